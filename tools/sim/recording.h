#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/proxies/whatif/scenario.h"

namespace vpfs::sim_tool {

// The requests of an application over time, from the timeline of a result of vpfs-load.
[[nodiscard]] Result<std::vector<sim::RecordedInterval>> read_recording(
    const std::filesystem::path& file, const std::string& application);

}  // namespace vpfs::sim_tool
