#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/host/config.h"

namespace vpfs::control {

// Keys of the file with their values, in the file's order. A key that is not set is missing or has
// an empty value.
using ConfigValues = std::vector<std::pair<std::string, std::string>>;

// Those of read_process(), of stage::read_stage_limits(), of `control` and of `scheduler`.
void add_process(ConfigValues& values, const HostConfig& config, const ProgramName& name);
void add_stage_limits(ConfigValues& values, const stage::Config& config);
void add_control(ConfigValues& values, const HostConfig& config);
void add_scheduler(ConfigValues& values, const stage::Config& config);

// "true" or "false"
[[nodiscard]] std::string switched(bool on);

// What differs: "scheduler.depth.requests 16 -> 32".
[[nodiscard]] std::vector<std::string> differences(const ConfigValues& before,
                                                   const ConfigValues& after);

}  // namespace vpfs::control
