#include "proxy/config/config_changes.h"

#include <utility>

#include "base/joined.h"
#include "control/host/config_changes.h"
#include "control/host/config_values.h"

namespace vpfs::proxy {
namespace {

void add_proxy(control::ConfigValues& values, const Config& config) {
  values.emplace_back("proxy.listen", config.listen);
  values.emplace_back("proxy.upstream", config.upstream);
  values.emplace_back("proxy.protocol", config.protocol);
  values.emplace_back("proxy.servers", joined(config.servers));
  values.emplace_back("proxy.write_back_by_file", control::switched(config.write_back_by_file));
  values.emplace_back("proxy.workers", config.workers ? std::to_string(*config.workers) : "auto");
  values.emplace_back("proxy.busy_poll", config.busy_poll ? to_string(*config.busy_poll) : "auto");
  control::add_process(values, config, kProgramName);
  values.emplace_back("proxy.local_congestion", config.local_congestion);
}

void add_limits(control::ConfigValues& values, const Config& config) {
  const Limits& limits = config.limits;
  values.emplace_back("limits.connections", std::to_string(limits.connections));
  values.emplace_back("limits.held_requests", std::to_string(limits.held_requests));
  values.emplace_back("limits.held_bytes", to_string(limits.held_bytes));
  control::add_stage_limits(values, config);
}

void add_timeouts(control::ConfigValues& values, const Timeouts& times) {
  values.emplace_back("timeouts.connect", to_string(times.connect));
  values.emplace_back("timeouts.hold", times.hold ? to_string(*times.hold) : "auto");
  values.emplace_back("timeouts.hold_min", to_string(times.hold_min));
  values.emplace_back("timeouts.service", to_string(times.service));
  values.emplace_back("timeouts.client_stall", to_string(times.client_stall));
  values.emplace_back("timeouts.client_min_rate", to_string(times.client_min_rate));
  values.emplace_back("timeouts.drain", to_string(times.drain));
}

control::ConfigValues values_of(const Config& config) {
  control::ConfigValues values;
  add_proxy(values, config);
  add_limits(values, config);
  add_timeouts(values, config.timeouts);
  values.emplace_back("restart.socket", config.restart.socket);
  values.emplace_back("restart.patience", to_string(config.restart.patience));
  values.emplace_back("restart.keep_over_crash", control::switched(config.keep_over_crash));
  values.emplace_back("restart.drain", to_string(config.restart.drain));
  control::add_control(values, config);
  control::add_scheduler(values, config);
  return values;
}

}  // namespace

std::vector<std::string> changes(const Config& before, const Config& after) {
  std::vector<std::string> lines = control::differences(values_of(before), values_of(after));
  for (std::string& line : control::stage_changes(before, after)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace vpfs::proxy
