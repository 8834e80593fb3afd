#pragma once

#include "base/clock.h"

namespace vpfs::test {

// A clock that does not move until it is set.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(TimePoint now) : now_(now) {}
  [[nodiscard]] TimePoint now() const override { return now_; }
  void set(TimePoint now) { now_ = now; }

 private:
  TimePoint now_;
};

}  // namespace vpfs::test
