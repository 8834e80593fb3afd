#include "schedulers/policies/anticipation.h"

#include <utility>

namespace vpfs {

void Anticipation::grow(std::size_t flows) {
  rows_.resize(flows);
  expected_.grow(flows);
}

// Alone, each of the flow's requests takes think.alone() from one to the next. While others are
// there, too, its part is fair when in that time the work of think.alone() is done in all: then the
// flow loses no more by the others than all lose together.
void Anticipation::take_stock(Row& row, std::uint32_t in_flight, const StartTag& tag, Tag lag) {
  const Cost done = controller_.work() - std::exchange(row.work, controller_.work());
  const Duration alone = row.think.alone();
  const Duration most = alone * kMostStock;
  const Duration passed = std::min(controller_.time_of(done), most);
  const auto chains = static_cast<std::int64_t>(
      std::min(in_flight + row.think.thinking(), ThinkTime::kMostThinking));
  row.behind = std::clamp(row.behind + passed * chains - alone, -most, most);
  // While it is not so far behind that it loses claims it gets all that its weight gives it.
  if (row.behind > Duration::zero() && lag > most_behind(tag) / 4) controller_.is_behind();
}

void Anticipation::begin_to_expect(std::uint32_t flow, Tag tag) {
  rows_[flow].was_expected = true;
  expected_.put(flow, tag);
}

void Anticipation::remove(std::uint32_t flow, TimePoint now) {
  if (flow >= rows_.size()) return;
  forget(flow, now);
  rows_[flow] = {};
}

void Anticipation::forget_all() {
  while (!expected_.empty()) expected_.erase(expected_.top());
}

TimePoint Anticipation::keep_until(std::uint32_t own, std::uint32_t outstanding, TimePoint now) {
  const std::uint32_t flow = expected_.top();
  ThinkTime& think = rows_[flow].think;
  const TimePoint latest = think.latest(own, now);
  const TimePoint given_up_at = std::max(latest, think.given_up_at(own, now));
  if (given_up_at <= now) {
    think.gave_up(now);
    rows_[flow].was_expected = false;
    expected_.erase(flow);
    return TimePoint::min();
  }
  controller_.want(now);
  if (!controller_.may_keep()) return now;
  // While the flow is late others go, but they do not fill the depth at once: then its next request
  // would wait behind all of them.
  const bool is_late = latest <= now;
  const bool is_behind = rows_[flow].behind > Duration::zero() && !is_late;
  const Duration left = think.earliest(own, now) - now;
  if (outstanding < controller_.may_be_outstanding(left, is_behind)) return now;
  controller_.keeps();
  return is_late ? given_up_at : latest;
}

void Anticipation::end_keep(TimePoint now) {
  const Duration time = now - kept_since_;
  rows_[kept_for_].kept += time;
  kept_in_all_ += time;
  kept_for_ = kNobody;
}

Duration Anticipation::kept(std::uint32_t flow, TimePoint now) const {
  return rows_[flow].kept + (kept_for_ == flow ? now - kept_since_ : Duration::zero());
}

StatusFields Anticipation::report(std::uint32_t flow, TimePoint now) const {
  StatusFields fields;
  const ThinkTime& think = rows_[flow].think;
  if (!think.is_known()) return fields;
  fields.add({.name = "think_time", .value = think.mean(), .join = StatusField::Join::largest});
  fields.add(
      {.name = "think_time_spread", .value = think.spread(), .join = StatusField::Join::largest});
  fields.add({.name = "most_in_flight",
              .value = std::int64_t{think.most_in_flight()},
              .join = StatusField::Join::largest});
  fields.add({.name = "comes_back_as_expected",
              .value = think.is_trusted(),
              .join = StatusField::Join::every});
  fields.add({.name = "slots_kept", .value = kept(flow, now), .join = StatusField::Join::largest});
  return fields;
}

StatusFields Anticipation::server(TimePoint now) const {
  StatusFields fields;
  if (!keeps_) return fields;
  const Duration kept_now = kept_for_ == kNobody ? Duration::zero() : now - kept_since_;
  fields.add(
      {.name = "slots_kept", .value = kept_in_all_ + kept_now, .join = StatusField::Join::largest});
  fields.add({.name = "expected_flows",
              .value = static_cast<std::int64_t>(expected_.size()),
              .join = StatusField::Join::sum});
  if (!controller_.may_keep()) return fields;
  fields.add({.name = "kept_down_to",
              .value = std::int64_t{controller_.level(true)},
              .join = StatusField::Join::largest});
  fields.add({.name = "full_throughput",
              .value = static_cast<std::int64_t>(controller_.reference()),
              .join = StatusField::Join::largest});
  return fields;
}

}  // namespace vpfs
