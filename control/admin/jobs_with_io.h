#pragma once

#include <cstddef>

#include "control/admin/stage_snapshot.h"
#include "stage/config/config.h"

namespace vpfs::control {

// How many jobs did I/O lately, as far as requests show job ids and each job has virtual PFSes of
// its own, and how many of these are registered.
struct JobsWithIo {
  std::size_t all = 0;
  std::size_t registered = 0;
};
[[nodiscard]] JobsWithIo jobs_with_io(const StageSnapshot& snapshot, const stage::Config& config);

}  // namespace vpfs::control
