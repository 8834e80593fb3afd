#pragma once

#include "base/clock.h"

namespace vpfs::test {

// A clock that does not move until a test moves it.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_ = TimePoint(std::chrono::hours(1));
};

}  // namespace vpfs::test
