#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace vpfs::control {

// The end of a requested time of so many seconds; 0: none. A time beyond all bounds becomes one
// that the rule book refuses.
[[nodiscard]] inline std::optional<WallTime> time_after(WallTime now, std::uint64_t seconds) {
  constexpr std::uint64_t kMost = std::uint64_t{200} * 366 * 24 * 3600;
  if (seconds == 0) return std::nullopt;
  return now + std::chrono::seconds(static_cast<std::int64_t>(std::min(seconds, kMost)));
}

}  // namespace vpfs::control
