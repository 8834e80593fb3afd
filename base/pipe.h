#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace vpfs {

// Does one amount after the other at a rate, as a device or a link does. Exact: no part of a
// nanosecond is lost or won between them.
class Pipe {
 public:
  static constexpr std::uint64_t kMostPerSecond = std::uint64_t{1} << 50;

  // REQUIRES: 1 <= per_second <= kMostPerSecond.
  explicit Pipe(std::uint64_t per_second)
      : rate_(per_second), free_at_(nanoseconds(TimePoint::min()) * rate_) {}

  // When an amount that is there at `ready` has passed, rounded down to the nanosecond. It begins
  // when all before it has passed, and the pipe is busy for `extra` before.
  [[nodiscard]] TimePoint pass(std::uint64_t amount, TimePoint ready,
                               Duration extra = Duration::zero()) {
    free_at_ = std::max(free_at_, nanoseconds(ready) * rate_) + Wide{extra.count()} * rate_ +
               Wide{amount} * kNanoseconds;
    return free_at();
  }
  // For what passes from now on.
  void set_rate(std::uint64_t per_second) {
    const Wide rest = free_at_ % rate_;
    free_at_ = free_at_ / rate_ * per_second + rest * per_second / rate_;
    rate_ = per_second;
  }

  [[nodiscard]] TimePoint free_at() const {
    return TimePoint(Duration(static_cast<std::int64_t>(free_at_ / rate_)));
  }
  // REQUIRES: both have the same rate.
  [[nodiscard]] bool is_free_before(const Pipe& other) const { return free_at_ < other.free_at_; }

 private:
  __extension__ using Wide = __int128;
  static constexpr Wide kNanoseconds = 1'000'000'000;

  static Wide nanoseconds(TimePoint time) { return time.time_since_epoch().count(); }

  Wide rate_;
  Wide free_at_;  // in parts of a nanosecond, of which one has rate_
};

}  // namespace vpfs
