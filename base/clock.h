#pragma once

#include <chrono>

namespace vpfs {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Time of day, for what must survive a restart. It may jump; measure durations with TimePoint.
using WallTime = std::chrono::sys_seconds;

// Where the time comes from. `main` makes one and hands it down; policies take a TimePoint instead.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;
};

}  // namespace vpfs
