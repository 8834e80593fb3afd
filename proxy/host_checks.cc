#include "proxy/host_checks.h"

#include <cerrno>
#include <filesystem>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/config_file.h"
#include "base/log.h"
#include "net/endpoint.h"
#include "net/socket_options.h"
#include "stage/job_config.h"
#include "stage/rule_checks.h"

namespace vpfs::proxy {
namespace {

std::string reason() {
  return std::error_code(errno, std::system_category()).message();
}

bool may(const std::string& path, int mode) {
  return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

// The proxy writes FILE.new beside the file and renames it.
std::optional<std::string> status_file_problem(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    return fmt::format("'{}' is a directory, not a file", path);
  }
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  if (!std::filesystem::is_directory(folder, unknown)) {
    return fmt::format("the folder '{}' does not exist", folder);
  }
  if (!may(folder, W_OK | X_OK)) {
    return fmt::format("the folder '{}' is not writable: {}", folder, reason());
  }
  const std::string fresh = path + ".new";
  if (!may(fresh, W_OK) && errno != ENOENT) {
    return fmt::format("'{}' is not writable: {}", fresh, reason());
  }
  return std::nullopt;
}

void check_congestion(const Config& config, ConfigErrors& errors) {
  constexpr std::string_view kKey = "proxy.upstream_congestion";
  if (config.upstream_congestion == "system") return;
  const std::optional<std::string> problem =
      net::congestion_control_problem(config.upstream_congestion);
  if (!problem) return;
  // A host may lack the default.
  if (config.upstream_congestion == Config().upstream_congestion) {
    errors.warn(kKey, *problem + "; the system's own is used");
  } else {
    errors.add(kKey, *problem);
  }
}

// A log file that cannot be written is not worth a proxy that does not start.
void check_log(const Config& config, ConfigErrors& errors) {
  if (config.log == "journal") {
    if (const Result<void> found = check_journal(); !found) {
      errors.add("proxy.log", found.error().message);
    }
  } else if (config.log != "stderr") {
    const std::string folder = std::filesystem::path(config.log).parent_path().string();
    std::error_code unknown;
    if (!folder.empty() && !std::filesystem::is_directory(folder, unknown)) {
      errors.warn("proxy.log", fmt::format("the folder '{}' does not exist: messages go to "
                                           "standard error until it does",
                                           folder));
    }
  }
}

// Whether a connection to `upstream` arrives at a listener of `listen`.
bool is_itself(const net::Endpoint& listen, const net::Endpoint& upstream) {
  if (listen.port() != upstream.port() || listen.port() == 0) return false;
  const asio::ip::address here = net::unmapped(listen).address();
  const asio::ip::address there = net::unmapped(upstream).address();
  if (here == there) return true;
  const bool serves_family = here.is_v6() || there.is_v4();  // [::] takes IPv4 too
  if (here.is_unspecified()) return serves_family && net::is_own_address(there);
  return there.is_unspecified() && here.is_loopback() && here.is_v4() == there.is_v4();
}

void check_addresses(const Config& config, ConfigErrors& errors) {
  if (config.upstream == kOriginal) return;
  const Result<net::Endpoint> listen = net::resolve_endpoint(config.listen);
  const Result<net::Endpoint> upstream = net::resolve_endpoint(config.upstream);
  if (!listen) errors.warn("proxy.listen", listen.error().message);
  if (!upstream) errors.warn("proxy.upstream", upstream.error().message);
  if (!listen || !upstream || !is_itself(*listen, *upstream)) return;
  errors.add("proxy.upstream",
             fmt::format("{} is where the proxy itself listens ({}): each connection would open "
                         "another one without end",
                         config.upstream, config.listen));
}

}  // namespace

void check_host(const Config& config, ConfigErrors& errors, const Config* running) {
  check_congestion(config, errors);
  if (!config.status_file.empty()) {
    if (const auto problem = status_file_problem(config.status_file)) {
      errors.add("proxy.status_file", *problem);
    }
  }
  check_log(config, errors);
  control::check_port_config(config.control, errors);
  if (running == nullptr) check_addresses(config, errors);
}

std::optional<Config> load_config_file(ConfigErrors& errors, const Config* running,
                                       const stage::Names* names) {
  return load_config(errors, [running, names](std::string_view text, ConfigErrors& found) {
    Config config = parse_config(text, found, running, names);
    if (found.empty()) check_host(config, found, running);
    if (found.empty()) stage::warn_of_hidden_rules(config, found);
    if (found.empty()) stage::warn_of_no_jobs(config, found);
    return config;
  });
}

}  // namespace vpfs::proxy
