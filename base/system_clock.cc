#include "base/system_clock.h"

namespace vpfs {

TimePoint SystemClock::now() const {
  return std::chrono::steady_clock::now();
}

WallTime wall_clock_now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

}  // namespace vpfs
