#include "proxy/config/host_checks.h"

#include <optional>

#include <fmt/format.h>

#include "base/config_file.h"
#include "control/host/config_summary.h"
#include "control/host/processors.h"
#include "net/congestion/congestion_control.h"
#include "net/endpoint.h"
#include "stage/config/job_config.h"
#include "stage/rules/rule_checks.h"

namespace vpfs::proxy {
namespace {

void check_congestion(const Config& config, ConfigErrors& errors) {
  constexpr std::string_view kKey = "proxy.local_congestion";
  if (config.local_congestion == "system") return;
  const std::optional<std::string> problem =
      net::congestion_control_problem(config.local_congestion);
  if (!problem) return;
  // A host may lack the default.
  if (config.local_congestion == Config().local_congestion) {
    errors.warn(kKey, *problem + "; the system's own is used");
  } else {
    errors.add(kKey, *problem);
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

void check_workers(const Config& config, std::size_t processors, ConfigErrors& errors) {
  if (config.workers.value_or(1) <= processors) return;
  errors.warn("proxy.workers",
              fmt::format("{} on {}: more workers than processors move no more data, and take "
                          "turns",
                          control::counted(*config.workers, "worker"),
                          control::counted(processors, "processor")));
}

void check_host(const Config& config, ConfigErrors& errors, const Config* running,
                const stage::Names* names) {
  check_congestion(config, errors);
  check_workers(config, control::Processors::here().count, errors);
  control::check_process(config, errors, kProgramName, names);
  control::check_restart(config.restart, config, errors);
  if (running != nullptr) return;
  control::check_folders(config, errors);
  check_addresses(config, errors);
}

std::optional<Config> load_config_file(ConfigErrors& errors, const Config* running,
                                       const stage::Names* names, stage::PolicyLoader* plugins) {
  return load_config_and_folder(errors, [=](std::string_view text, ConfigErrors& found) {
    Config config = parse_config(text, found, running, names, plugins);
    if (found.empty()) check_host(config, found, running, names);
    if (found.empty()) stage::warn_of_hidden_rules(config.rules, found);
    if (found.empty()) stage::warn_of_no_jobs(config, found);
    return config;
  });
}

}  // namespace vpfs::proxy
