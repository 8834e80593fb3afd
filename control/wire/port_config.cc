#include "control/wire/port_config.h"

#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/named_file.h"
#include "base/system_clock.h"
#include "control/wire/config_words.h"
#include "control/wire/leader/address_list.h"
#include "control/wire/rights.h"
#include "net/endpoint.h"
#include "net/tls.h"
#include "net/unix_socket.h"

namespace vpfs::control {
namespace {

constexpr std::string_view kForms =
    "alice, @storage, user:NAME, group:NAME, uid:NUMBER, gid:NUMBER or cert:NAME";

std::optional<std::uint32_t> number(std::string_view text, int base = 10) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void read_principals(ConfigReader& control, std::string_view key, std::vector<Principal>& into) {
  std::vector<std::string> texts;
  if (!control.get(key, &texts)) return;
  for (const std::string& text : texts) {
    if (auto principal = parse_principal(text)) {
      into.push_back(std::move(*principal));
    } else {
      control.report(key, principal.error().message);
    }
  }
}

void read_mode(ConfigReader& control, std::uint32_t* mode) {
  std::string text;
  if (!control.get("mode", &text)) return;
  const auto value = number(text, 8);
  if (!value || *value > 0777) {
    control.report("mode", fmt::format("\"{}\" is not a mode: expected one such as 0660", text));
  } else if ((*value & 0600) != 0600) {
    control.report("mode",
                   fmt::format("{} keeps the socket's owner out: expected one such as 0660", text));
  } else {
    *mode = *value;
  }
}

void read_path(ConfigReader& control, std::string_view key, std::string* path) {
  if (!control.get(key, path)) return;
  if (path->empty() || path->find('\0') != std::string::npos) {
    control.report(key, "must be the path of a file");
    path->clear();
  }
}

void read_tcp(ConfigReader& control, PortConfig& config, MayDial may_dial) {
  if (control.get("tcp", &config.tcp)) {
    if (const auto parts = net::split_address(config.tcp); !parts) {
      control.report("tcp", parts.error().message);
    }
  }
  std::vector<PortAddress> coordinators;
  if (may_dial == MayDial::yes) coordinators = read_addresses(control, "coordinator");
  for (const PortAddress& each : coordinators) config.coordinators.push_back(to_string(each));
  // The HTTP port of the same mapping has them too.
  const bool needs_tls = control.has("tcp") || control.has("https") || any_is_tcp(coordinators);
  for (const char* key : {"certificate", "key", "ca"}) {
    if (needs_tls && !control.has(key)) {
      control.report(key, "is missing: TLS needs control.certificate, control.key and control.ca");
    }
  }
  read_path(control, "certificate", &config.certificate);
  read_path(control, "key", &config.key);
  read_path(control, "ca", &config.ca);
  if (needs_tls) return;
  for (const char* key : {"certificate", "key", "ca"}) {
    if (control.has(key)) {
      control.report(key, "needs control.tcp or control.https, which are missing");
    }
  }
}

constexpr auto kEndsSoon = std::chrono::days(30);

// Certificates end at a time that was chosen long before.
void warn_of_end(const PortConfig& config, ConfigErrors& errors) {
  const auto end = net::end_of_certificate(config.certificate);
  if (!end) return;
  const auto left = *end - wall_clock_now();
  if (left >= kEndsSoon) return;
  const std::string when = fmt::format("{:%F %T} UTC: make another one, and reload", *end);
  const char* const what = left <= left.zero() ? "has ended at" : "is valid until";
  errors.warn("control.certificate", fmt::format("{} {} {}", config.certificate, what, when));
}

}  // namespace

Result<Principal> parse_principal(std::string_view text) {
  using Kind = Principal::Kind;
  const auto wrong = [&] {
    return fail(
        fmt::format("\"{}\" is not a user, group or certificate: expected {}", text, kForms));
  };
  const std::size_t colon = text.find(':');
  const std::string_view kind = colon == std::string_view::npos ? "" : text.substr(0, colon);
  std::string_view name = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const bool at = kind.empty() && name.starts_with('@');
  if (at) name.remove_prefix(1);
  if (name.empty() || colon == 0 || name.find('\0') != std::string_view::npos) return wrong();

  if (kind == "uid" || kind == "gid") {
    const auto id = number(name);
    if (!id || *id == UINT32_MAX) return wrong();
    return Principal{.kind = kind == "uid" ? Kind::uid : Kind::gid, .name = "", .id = *id};
  }
  Principal principal{.kind = Kind::user, .name = std::string(name)};
  if (kind == "group" || at) {
    principal.kind = Kind::group;
  } else if (kind == "cert") {
    principal.kind = Kind::certificate;
  } else if (!kind.empty() && kind != "user") {
    return wrong();
  }
  return principal;
}

void read_port_keys(ConfigReader& port, PortConfig& config, MayDial may_dial) {
  port.suggest(kPortConfigWords);
  read_path(port, "socket", &config.socket);
  if (config.socket.size() > net::kMostSocketPath) {
    port.report("socket", fmt::format("has {} bytes; the path of a socket may have {}",
                                      config.socket.size(), net::kMostSocketPath));
  }
  read_mode(port, &config.mode);
  port.get("group", &config.group);
  read_tcp(port, config, may_dial);
  read_principals(port, "readers", config.readers);
  read_principals(port, "writers", config.writers);
  read_path(port, "audit", &config.audit);
}

PortConfig read_port_config(ConfigReader& parent,
                            const std::function<void(ConfigReader& control)>& others,
                            MayDial may_dial) {
  PortConfig config;
  if (!parent.has("control")) return config;
  ConfigReader control = parent.child("control");
  read_port_keys(control, config, may_dial);
  if (others) others(control);
  const bool silent = !others && !config.enabled();
  if (silent && control.flawless()) {
    control.report("", "has neither a socket nor tcp, so there is no control port");
  }
  return config;
}

void check_port_config(const PortConfig& config, ConfigErrors& errors, const Accounts& accounts) {
  if (!config.enabled()) return;
  const auto problem = [&](const Error& error) { errors.add(error.place(), error.text()); };
  if (const auto access = resolve_access(config, accounts); !access) problem(access.error());
  const auto coordinators = parse_addresses(config.coordinators);
  const bool dials_tcp = coordinators && any_is_tcp(*coordinators);
  if (config.tcp.empty() && !dials_tcp) return;
  const net::TlsFiles files = {config.certificate, config.key, config.ca};
  const auto side = config.tcp.empty() ? net::TlsSide::client : net::TlsSide::server;
  if (const auto tls = net::TlsContext::load(files, side); !tls) {
    errors.add("control.certificate", tls.error().message);
  } else {
    warn_of_end(config, errors);
  }
}

void check_port_folders(const PortConfig& config, std::string_view key, ConfigErrors& errors) {
  for (const auto& [name, path] : {std::pair("socket", config.socket), {"audit", config.audit}}) {
    if (const auto problem = problem_of_place(path)) {
      errors.add(fmt::format("{}.{}", key, name), *problem);
    }
  }
}

Result<void> may_become(const PortConfig& running, const PortConfig& wanted) {
  const char* changed = running.socket != wanted.socket ? "socket"
                        : running.mode != wanted.mode   ? "mode"
                        : running.group != wanted.group ? "group"
                        : running.tcp != wanted.tcp     ? "tcp"
                                                        : nullptr;
  if (changed == nullptr) return {};
  return fail(fmt::format("control.{}: cannot change while the port is open: restart", changed));
}

}  // namespace vpfs::control
