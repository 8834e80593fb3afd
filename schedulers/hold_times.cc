#include "schedulers/hold_times.h"

namespace vpfs {

Duration HoldTimes::of(HoldReason reason) const {
  switch (reason) {
    case HoldReason::limit:
      return limit;
    case HoldReason::share:
      return share;
    case HoldReason::kept_slot:
      return kept_slot;
    case HoldReason::depth:
      return depth;
    case HoldReason::traffic_class:
      break;
  }
  return traffic_class;
}

void HoldClock::grow(std::size_t flows) {
  if (flows <= rows_.size()) return;
  rows_.resize(flows);
  fresh_.resize(rows_.size());
}

void HoldClock::start(std::uint32_t flow, TimePoint now) {
  Row& row = rows_[flow];
  if (row.counts) return;
  row.limit = row.depth = {};
  row.passed = {};
  row.counts = true;
  row.until = std::max(row.until, now + limit_clock_ahead_);
  add(row, now, -1);
}

}  // namespace vpfs
