#pragma once

#include <cstdint>
#include <functional>

#include "sim/proxies/replay/recorded_io.h"
#include "stage/config/config.h"
#include "tools/sim/replay_report.h"

namespace vpfs::sim_tool {

// How far a replay is, and what it has done until then.
using ReplayProgress = std::function<void(int percent, std::uint64_t events)>;

// The recorded requests with another configuration, before a device that is as fast as the data
// server was. The names of the recording and of the configuration are the caller's to fill in.
// REQUIRES: `load` has requests, and the configuration was read without errors.
[[nodiscard]] FinishedReplay replayed(const sim::RecordedLoad& load, const stage::Config& config,
                                      const ReplayProgress& progress);

}  // namespace vpfs::sim_tool
