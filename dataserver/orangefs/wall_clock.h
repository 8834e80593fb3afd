#pragma once

#include <chrono>
#include <functional>

namespace vpfs::dataserver {

// The time of day since the epoch, for time stamps, capabilities and the start of the serial
// numbers. `main` passes the machine's clock; tests pass their own.
using WallClock = std::function<std::chrono::milliseconds()>;

}  // namespace vpfs::dataserver
