#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "sim/proxies/whatif/scenario.h"
#include "sim/proxies/whatif/what_if.h"

namespace vpfs::sim_tool {

// A scenario that was run.
struct FinishedRun {
  std::string name;  // of its file
  sim::Scenario scenario;
  std::string policy;
  sim::WhatIfResult result;
};

// The last interval of the measured time may be shorter.
[[nodiscard]] Duration interval_length(const FinishedRun& run, std::size_t interval);

// What each application got, in lines for people.
[[nodiscard]] std::string to_table(const FinishedRun& run);
// Two runs side by side. Applications are matched by their names.
[[nodiscard]] std::string to_comparison(const FinishedRun& before, const FinishedRun& after);
// Everything, with times in microseconds and rates in MiB/s. The same for all machines.
[[nodiscard]] std::string to_json(std::span<const FinishedRun> runs);
// The rate of each application over the measured time, one picture for each run, as SVG. What it is
// entitled to is dashed; grey: the coordinator is away.
[[nodiscard]] std::string to_svg(std::span<const FinishedRun> runs);

}  // namespace vpfs::sim_tool
