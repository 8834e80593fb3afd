#include "proxy/config.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "net/endpoint.h"
#include "protocols/registry.h"
#include "proxy/address_block.h"
#include "proxy/config_words.h"
#include "proxy/job_config.h"
#include "proxy/scheduler_config.h"

namespace vpfs::proxy {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kShortest = milliseconds(1);
constexpr Duration kLongest = hours(24);

template <typename Names>
std::vector<std::string> strings(const Names& names) {
  return {names.begin(), names.end()};
}

// The form only: names are looked up at the start.
void read_address(ConfigReader& reader, std::string_view key, std::string& address) {
  reader.require(key);
  if (!reader.get(key, &address)) return;
  const auto parts = net::split_address(address);
  if (!parts) {
    reader.report(key, parts.error().message);
  } else if (key == "upstream" && parts->port == 0) {
    reader.report(key, "port 0 is no port that a data server can have");
  }
}

void check_unchanged(ConfigReader& reader, const Config& config, const Config& running) {
  const auto check = [&](std::string_view key, bool same) {
    if (!same) reader.report(key, "cannot change while the proxy runs: restart it");
  };
  check("listen", config.listen == running.listen);
  check("upstream", config.upstream == running.upstream);
  check("protocol", config.protocol == running.protocol);
  check("workers", config.workers == running.workers);
}

void read_servers(ConfigReader& reader, Config& config) {
  if (!reader.get("servers", &config.servers)) return;
  if (config.protocol != "beegfs") {
    return reader.report(
        "servers", fmt::format("the protocol {} does not know other servers", config.protocol));
  }
  for (const std::string& server : config.servers) {
    if (!AddressBlock::parse(server)) {
      reader.report("servers", fmt::format("'{}' is no IP address or CIDR block", server));
    }
  }
}

void read_proxy(ConfigReader reader, Config& config, const Config* running) {
  read_address(reader, "listen", config.listen);
  if (reader.is("upstream", kOriginal)) {
    reader.get("upstream", &config.upstream);
  } else {
    read_address(reader, "upstream", config.upstream);
  }
  reader.choose("protocol", &config.protocol, strings(protocol_names()));
  read_servers(reader, config);
  reader.get("workers", &config.workers, 1, 256);
  reader.get("status_file", &config.status_file);
  reader.get("status_interval", &config.status_interval, milliseconds(100), kLongest);
  reader.choose("log_level", &config.log_level, {"trace", "debug", "info", "warn", "error", "off"});
  reader.get("upstream_congestion", &config.upstream_congestion);
  reader.get("write_back_by_file", &config.write_back_by_file);
  suggest_proxy_words(reader);
  reader.finish();
  // What could not be read has not been changed.
  if (running != nullptr && reader.flawless()) check_unchanged(reader, config, *running);
}

void read_limits(ConfigReader reader, Limits& limits) {
  std::uint64_t count = limits.connections;
  if (reader.get("connections", &count, 1, 1'000'000)) limits.connections = count;
  count = limits.held_requests;
  if (reader.get("held_requests", &count, 1, 1'000'000)) limits.held_requests = count;
  // One request of the largest size must fit.
  reader.get("held_bytes", &limits.held_bytes, {32 * kKiB}, {kGiB});
  count = limits.virtual_pfs;
  if (reader.get("virtual_pfs", &count, 1, 1'000'000)) limits.virtual_pfs = count;
  if (reader.is("max_held_per_client", "off")) {
    limits.per_client.enabled = false;
  } else if (!reader.is("max_held_per_client", "auto") &&
             reader.get("max_held_per_client", &count, 1, 1'000'000)) {
    limits.per_client.most = count;
  }
}

void read_timeouts(ConfigReader reader, Timeouts& timeouts) {
  reader.get("connect", &timeouts.connect, kShortest, kLongest);
  std::string text;
  if (reader.get("hold", &text) && text != "auto") {
    Duration hold = {};
    if (reader.get("hold", &hold, milliseconds(10), kLongest)) timeouts.hold = hold;
  }
  reader.get("hold_min", &timeouts.hold_min, milliseconds(10), kLongest);
  reader.get("drain", &timeouts.drain, Duration::zero(), kLongest);
  reader.get("service", &timeouts.service, milliseconds(100), kLongest);
  reader.get("client_stall", &timeouts.client_stall, milliseconds(100), kLongest);
  reader.get("client_min_rate", &timeouts.client_min_rate, {1}, {Share::kMaxRate});
}

void read_numbers(ConfigReader& match, std::string_view key, std::uint64_t most,
                  std::vector<std::uint64_t>& numbers) {
  std::vector<std::string> texts;
  if (!match.get(key, &texts)) return;
  for (const std::string& text : texts) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number > most) {
      match.report(key, fmt::format("'{}' is not a number from 0 to {}", text, most));
    } else {
      numbers.push_back(number);
    }
  }
}

// Reports a condition that never holds with the protocol.
bool shown(ConfigReader& match, std::string_view key, const Config& config, Attribute attribute) {
  if (!match.has(key)) return false;
  if (protocol_shows(config.protocol, attribute)) return true;
  match.report(key, fmt::format("the protocol {} does not show it", config.protocol));
  return false;
}

void read_operation(ConfigReader& match, std::string_view key, const Config& config,
                    RuleConfig& rule) {
  std::string operation;
  if (!match.choose(key, &operation, {"read", "write", "metadata"})) return;
  rule.kind = operation == "read"    ? RequestKind::read
              : operation == "write" ? RequestKind::write
                                     : RequestKind::metadata;
  if (rule.kind == RequestKind::metadata) (void)shown(match, key, config, Attribute::metadata);
}

void read_hints(ConfigReader& match, const Config& config, RuleConfig& rule) {
  if (!shown(match, "hint", config, Attribute::hint) || !match.get("hint", &rule.hints)) return;
  for (const auto& [name, pattern] : rule.hints) {
    if (!pattern.empty()) continue;
    match.report("hint", fmt::format("the pattern of '{}' is empty; '*' matches any value", name));
  }
}

void read_match(ConfigReader match, const Config& config, RuleConfig& rule) {
  if (match.get("client", &rule.clients)) {
    for (const std::string& client : rule.clients) {
      if (!AddressBlock::parse(client)) {
        match.report("client", fmt::format("'{}' is no IP address or CIDR block", client));
      }
    }
  }
  read_hints(match, config, rule);
  read_operation(match, match.has("op") ? "op" : "operation", config, rule);
  const auto numbers = [&](std::string_view key, Attribute attribute, std::uint64_t most,
                           std::vector<std::uint64_t>& wanted) {
    if (shown(match, key, config, attribute)) read_numbers(match, key, most, wanted);
  };
  numbers("file_system", Attribute::file_system, INT32_MAX, rule.file_systems);
  numbers("uid", Attribute::uid, UINT32_MAX, rule.uids);
  numbers("node", Attribute::node, UINT32_MAX, rule.nodes);
  numbers("target", Attribute::target, UINT16_MAX, rule.targets);
  numbers("owner", Attribute::owner, UINT32_MAX, rule.owners);
  if (shown(match, "dir", config, Attribute::directory) && match.get("dir", &rule.directories) &&
      std::ranges::find(rule.directories, "") != rule.directories.end()) {
    match.report("dir", "an empty pattern matches nothing");
  }
  suggest_match_words(match);
}

// A virtual PFS that a rule names must be declared, and a template's fields must be attributes that
// the protocol shows or hints that the rule itself demands: then they are always there.
void check_target(ConfigReader& entry, const Config& config, const RuleConfig& rule) {
  const auto declared = [&](const VirtualPfsConfig& each) { return each.name == rule.virtual_pfs; };
  if (rule.virtual_pfs != "default" && std::ranges::none_of(config.virtual_pfs, declared)) {
    entry.report("virtual_pfs",
                 fmt::format("'{}' is not declared under virtual_pfs", rule.virtual_pfs));
  }
  if (const auto problem = template_problem(rule.virtual_pfs)) {
    entry.report("virtual_pfs", *problem);
    return;
  }
  for (const std::string& field : template_fields(rule.virtual_pfs)) {
    const auto demanded = [&](const auto& hint) { return hint.first == field; };
    const std::optional<Attribute> attribute = template_attribute(field);
    if (attribute && protocol_shows(config.protocol, *attribute)) continue;
    if (std::ranges::none_of(rule.hints, demanded)) {
      entry.report("virtual_pfs",
                   fmt::format("the template uses {{{}}}, but the rule matches no hint "
                               "'{}'",
                               field, field));
    }
  }
}

void read_class(ConfigReader& entry, const Config& config, RuleConfig& rule) {
  rule.traffic_class = default_class(config);
  std::vector<std::string> names;
  for (const TrafficClasses::Class& each : config.scheduler.classes.classes) {
    names.push_back(each.name);
  }
  std::string name;
  if (names.empty() && entry.has("class")) {
    entry.report("class", "no classes are named under scheduler.classes");
  } else if (entry.choose("class", &name, names)) {
    rule.traffic_class = static_cast<std::uint8_t>(std::ranges::find(names, name) - names.begin());
  }
}

}  // namespace

std::uint8_t default_class(const Config& config) {
  const std::size_t count = config.scheduler.classes.classes.size();
  return static_cast<std::uint8_t>(count == 0 ? 0 : count - 1);
}

std::optional<Attribute> template_attribute(std::string_view field) {
  if (field == "uid") return Attribute::uid;
  if (field == "node") return Attribute::node;
  if (field == "target") return Attribute::target;
  if (field == "owner") return Attribute::owner;
  if (field == "dir") return Attribute::directory;
  return std::nullopt;
}

std::optional<std::string> template_problem(std::string_view name) {
  std::size_t open = std::string_view::npos;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool inside = open != std::string_view::npos;
    if (name[at] == '{' ? inside : name[at] == '}' && !inside) {
      return fmt::format("'{}': its braces do not pair up, as in job-{{jobid}}", name);
    }
    if (name[at] == '}' && at == open + 1) {
      return fmt::format("'{}': {{}} names no field, as {{jobid}} does", name);
    }
    if (name[at] == '{') open = at;
    if (name[at] == '}') open = std::string_view::npos;
  }
  if (open == std::string_view::npos) return std::nullopt;
  return fmt::format("'{}': a brace is never closed, as in job-{{jobid}}", name);
}

std::vector<std::string> template_fields(std::string_view name) {
  std::vector<std::string> fields;
  for (std::size_t open = name.find('{'); open != std::string_view::npos;
       open = name.find('{', open + 1)) {
    const std::size_t close = name.find('}', open);
    if (close == std::string_view::npos) break;
    fields.emplace_back(name.substr(open + 1, close - open - 1));
  }
  return fields;
}

Config parse_config(std::string_view text, ConfigErrors& errors, const Config* running) {
  Config config;
  ConfigReader reader(text, errors);
  reader.require("proxy");
  read_proxy(reader.child("proxy"), config, running);
  read_limits(reader.child("limits"), config.limits);
  read_timeouts(reader.child("timeouts"), config.timeouts);
  read_scheduler(reader.child("scheduler"), config, running);
  read_shares(reader, config);
  suggest_top_words(reader);
  read_jobs(reader, config);
  reader.for_each("rules", [&](ConfigReader& entry) {
    RuleConfig rule;
    read_match(entry.child("match"), config, rule);
    read_class(entry, config, rule);
    entry.require("virtual_pfs");
    if (entry.get("virtual_pfs", &rule.virtual_pfs)) check_target(entry, config, rule);
    suggest_rule_words(entry);
    config.rules.push_back(std::move(rule));
  });
  return config;
}

}  // namespace vpfs::proxy
