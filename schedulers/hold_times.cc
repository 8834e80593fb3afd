#include "schedulers/hold_times.h"

namespace vpfs {

HoldTimes& HoldTimes::operator+=(const HoldTimes& more) {
  limit += more.limit;
  share += more.share;
  depth += more.depth;
  traffic_class += more.traffic_class;
  return *this;
}

Duration HoldTimes::of(HoldReason reason) const {
  switch (reason) {
    case HoldReason::limit:
      return limit;
    case HoldReason::share:
      return share;
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
  row.times = {};
  row.counts = true;
  row.until = std::max(row.until, now + limit_clock_ahead_);
  add(row, now, -1);
}

HoldTimes HoldClock::held(std::uint32_t flow, TimePoint now) const {
  if (flow >= rows_.size() || !rows_[flow].counts) return {};
  Row row = rows_[flow];
  end_state(row, now);
  return row.times;
}

}  // namespace vpfs
