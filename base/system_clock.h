#pragma once

#include "base/clock.h"

namespace vpfs {

// The machine's monotonic clock. No other code of vpfs reads it.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override;
};

// The time of day. No other code of vpfs reads it.
[[nodiscard]] WallTime wall_clock_now();

}  // namespace vpfs
