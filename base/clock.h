#pragma once

#include <chrono>
#include <cstdint>

namespace vpfs {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Time of day, for what must survive a restart. It may jump; measure durations with TimePoint.
using WallTime = std::chrono::sys_seconds;

inline constexpr TimePoint kNever = TimePoint::max();
inline constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;

// Whole microseconds; 0 for a negative time.
[[nodiscard]] constexpr std::uint64_t microseconds_of(Duration time) {
  const auto count = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  return count > 0 ? static_cast<std::uint64_t>(count) : 0;
}

[[nodiscard]] constexpr double in_seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

[[nodiscard]] constexpr std::int64_t seconds_since_epoch(WallTime time) {
  return time.time_since_epoch().count();
}

// Where the time comes from. `main` makes one and hands it down; policies take a TimePoint instead.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;
};

}  // namespace vpfs
