#pragma once

#include "base/clock.h"

namespace vpfs::proxy {

// A worker looks at its sessions this often.
inline constexpr Duration kTick = std::chrono::milliseconds(50);
inline constexpr Duration kStall = std::chrono::seconds(2);  // `timeouts.client_stall`

}  // namespace vpfs::proxy
