#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/host/config.h"

// Parts of what programs say of their configuration, in words.
// REQUIRES: it was read without errors.
namespace vpfs::control {

// "status in FILE every 5 s, log level info"
[[nodiscard]] std::string process_summary(const HostConfig& config);

// How administrators and coordinators reach the program; "" if they cannot.
[[nodiscard]] std::string ports_summary(const HostConfig& config);

// What the stage does, one indented line per item.
[[nodiscard]] std::string stage_summary(const stage::Config& config);

// The same in two lines, for the log of a program that starts.
[[nodiscard]] std::vector<std::string> stage_lines(const stage::Config& config);

// What a rule of the configuration does: "client 10.0.0.0/8 and reads -> simulation (class fast)".
[[nodiscard]] std::string describe_rule(const stage::Config& config, const stage::RuleConfig& rule);

// "1 worker", "2 workers"
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view what);

// The lines that are not empty, each indented as those of stage_summary().
[[nodiscard]] std::string indented(const std::vector<std::string>& lines);

}  // namespace vpfs::control
