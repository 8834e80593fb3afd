#pragma once

#include "base/result.h"
#include "sim/proxies/replay/recorded_io.h"
#include "tools/recording/recording.h"

namespace vpfs::sim_tool {

// The requests of a recording that the data server has served, for the simulator. An error: there
// is none.
[[nodiscard]] Result<sim::RecordedLoad> load_of(const recording::Recording& recording);

}  // namespace vpfs::sim_tool
