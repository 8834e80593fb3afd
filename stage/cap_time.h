#pragma once

#include "base/clock.h"

namespace vpfs::stage {

// For how long a coordinator's cap held the head of a flow. A stage counts all times that a limit
// did, so those count here in which the cap was lower than the flow's own limit. A flow that its
// own limit holds wants no more than that, and must not count as one that its cap holds.
class CapTime {
 public:
  // `by_limits`: by any limit, since a beginning. Returns whether total() has changed.
  bool advance(Duration by_limits, bool is_capped) {
    const Duration more = by_limits - seen_;
    seen_ = by_limits;
    if (is_capped) total_ += more;
    return is_capped && more > Duration::zero();
  }
  [[nodiscard]] Duration total() const { return total_; }

  bool operator==(const CapTime&) const = default;

 private:
  Duration seen_ = {};
  Duration total_ = {};
};

}  // namespace vpfs::stage
