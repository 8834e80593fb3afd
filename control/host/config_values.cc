#include "control/host/config_values.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/joined.h"
#include "schedulers/policies/registry.h"

namespace vpfs::control {
namespace {

using Lines = std::vector<std::string>;

std::string_view value_of(const ConfigValues& values, std::string_view key) {
  const auto found = std::ranges::find(values, key, &ConfigValues::value_type::first);
  return found == values.end() ? std::string_view() : found->second;
}

std::string factor(std::uint32_t permille) {
  return fmt::format("{}", permille / 1000.0);
}

std::string most_held(const stage::ClientLimitSettings& limits) {
  if (!limits.enabled) return "off";
  return limits.most ? std::to_string(*limits.most) : "auto";
}

void add_classes(ConfigValues& values, const TrafficClasses& classes) {
  const bool apportioned = classes.mode == TrafficClasses::Mode::apportion;
  Lines names;
  for (const TrafficClasses::Class& each : classes.classes) {
    names.push_back(apportioned ? fmt::format("{} {}", each.name, each.share) : each.name);
  }
  values.emplace_back("scheduler.classes.mode", classes.mode == TrafficClasses::Mode::none ? "none"
                                                : apportioned ? "apportion"
                                                              : "strict");
  values.emplace_back("scheduler.classes.names", joined(names, " : "));
  values.emplace_back("scheduler.classes.max_starvation",
                      classes.max_starvation ? to_string(*classes.max_starvation) : "");
}

std::string fallback_of(const stage::Config& config) {
  switch (config.fallback.mode) {
    case stage::Fallback::Mode::configured:
      return "configured";
    case stage::Fallback::Mode::last:
      return "last";
    case stage::Fallback::Mode::rate:
      return to_string(config.fallback.rate);
  }
  return "";
}

std::string plugins_of(const stage::Config& config) {
  Lines paths;
  for (const stage::PluginConfig& each : config.plugins) paths.push_back(each.path);
  return joined(paths);
}

std::string names_of(const std::vector<Principal>& principals) {
  Lines names;
  for (const Principal& each : principals) {
    names.push_back(each.name.empty() ? std::to_string(each.id) : each.name);
  }
  return joined(names);
}

}  // namespace

std::string switched(bool on) {
  return on ? "true" : "false";
}

// "weight 4 -> 8"
std::vector<std::string> differences(const ConfigValues& before, const ConfigValues& after) {
  Lines lines;
  const auto add = [&](std::string_view key, std::string_view was, std::string_view is) {
    const auto shown = [](std::string_view value) { return value.empty() ? "none" : value; };
    if (was != is) lines.push_back(fmt::format("{} {} -> {}", key, shown(was), shown(is)));
  };
  for (const auto& [key, value] : after) add(key, value_of(before, key), value);
  for (const auto& [key, value] : before) {
    const bool compared =
        std::ranges::find(after, key, &ConfigValues::value_type::first) != after.end();
    if (!compared) add(key, value, {});
  }
  return lines;
}

void add_process(ConfigValues& values, const HostConfig& config, const ProgramName& name) {
  const auto add = [&](std::string_view key, std::string value) {
    values.emplace_back(fmt::format("{}.{}", name.role, key), std::move(value));
  };
  add("status_file", config.status_file);
  add("status_interval", to_string(config.status_interval));
  add("log", config.log);
  add("log_level", config.log_level);
}

void add_stage_limits(ConfigValues& values, const stage::Config& config) {
  values.emplace_back("limits.virtual_pfs", std::to_string(config.most_virtual_pfs));
  values.emplace_back("limits.idle", to_string(config.idle));
  values.emplace_back("limits.max_held_per_client", most_held(config.client_limits));
}

std::string longest_delay_of(const HostConfig& config) {
  return config.longest_delay ? to_string(*config.longest_delay) : "auto";
}

void add_control(ConfigValues& values, const HostConfig& config) {
  const PortConfig& port = config.control;
  values.insert(values.end(), {{"control.name", config.name},
                               {"control.certificate", port.certificate},
                               {"control.key", port.key},
                               {"control.ca", port.ca},
                               {"control.readers", names_of(port.readers)},
                               {"control.writers", names_of(port.writers)},
                               {"control.audit", port.audit},
                               {"control.coordinator", joined(port.coordinators)},
                               {"control.fallback", fallback_of(config)},
                               {"control.longest_delay", longest_delay_of(config)}});
}

void add_scheduler(ConfigValues& values, const stage::Config& config) {
  const SchedulerSettings& scheduler = config.scheduler;
  const bool has_cost_limit = scheduler.depth.cost < Depth().cost;
  const CostModel::Settings& cost = config.cost;
  const ConfigValues all = {
      {"plugins", plugins_of(config)},
      {"policy", config.policy},
      {"depth.requests", scheduler.auto_depth ? "auto" : std::to_string(scheduler.depth.requests)},
      {"depth.bytes", has_cost_limit ? to_string(Bytes{scheduler.depth.cost}) : ""},
      {"cost.per_request", to_string(cost.per_request)},
      {"cost.read_factor", factor(cost.read_factor_permille)},
      {"cost.write_factor", factor(cost.write_factor_permille)},
      {"cost.metadata", to_string(cost.metadata)},
      {"schedule", config.schedule_metadata ? "[io, metadata]" : "[io]"},
      {"per_target", switched(config.scheduler_per_target)}};
  for (const auto& [key, value] : all) values.emplace_back("scheduler." + key, value);
  add_classes(values, scheduler.classes);
}

}  // namespace vpfs::control
