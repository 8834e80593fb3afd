#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "base/wide.h"

namespace vpfs {

// Passes one amount after the other at a rate, as a device or a link does. Exact: no part of a
// nanosecond is lost or gained between them.
class Pipe {
 public:
  static constexpr std::uint64_t kMostPerSecond = std::uint64_t{1} << 50;

  // REQUIRES: 1 <= per_second <= kMostPerSecond.
  explicit Pipe(std::uint64_t per_second)
      : rate_(per_second), free_at_(nanoseconds(TimePoint::min()) * rate_) {}

  // The time at which an amount that is there at `ready` has passed, rounded down to the
  // nanosecond. It begins when everything before it has passed and the pipe has been busy for
  // `extra`.
  [[nodiscard]] TimePoint pass(std::uint64_t amount, TimePoint ready,
                               Duration extra = Duration::zero()) {
    free_at_ = std::max(free_at_, nanoseconds(ready) * rate_) + SignedWide{extra.count()} * rate_ +
               SignedWide{amount} * kNanosecondsPerSecond;
    return free_at();
  }
  // Applies to amounts that pass from now on.
  void set_rate(std::uint64_t per_second) {
    const SignedWide rest = free_at_ % rate_;
    free_at_ = free_at_ / rate_ * per_second + rest * per_second / rate_;
    rate_ = per_second;
  }

  [[nodiscard]] TimePoint free_at() const {
    return TimePoint(Duration(static_cast<std::int64_t>(free_at_ / rate_)));
  }
  // REQUIRES: both have the same rate.
  [[nodiscard]] bool is_free_before(const Pipe& other) const { return free_at_ < other.free_at_; }

 private:
  static SignedWide nanoseconds(TimePoint time) { return time.time_since_epoch().count(); }

  SignedWide rate_;
  SignedWide free_at_;  // in units of 1 ns / rate_
};

}  // namespace vpfs
