#include "base/system_clock.h"

namespace vpfs {

TimePoint SystemClock::now() const {
  return std::chrono::steady_clock::now();
}

}  // namespace vpfs
