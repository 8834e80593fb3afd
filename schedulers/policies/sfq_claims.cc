// The part of Sfq that anticipates: flows that are expected have claims, and slots are kept for
// them (Anticipation).
#include <algorithm>

#include "schedulers/policies/sfq.h"

namespace vpfs {

TimePoint Sfq::slot_kept_until(TimePoint now) {
  while (anticipation_->is_before(order_.top_tag())) {
    const std::uint32_t next = anticipation_->next();
    if (siblings_.exist() && catch_up(next, now)) continue;
    const TimePoint until = anticipation_->keep_until(
        flows_[next].account.outstanding, static_cast<std::uint32_t>(outstanding_), now);
    if (until == TimePoint::min()) continue;
    if (until <= now) break;
    anticipation_->slot_is_kept(next, now);
    return until;
  }
  return now;
}

TimePoint Sfq::next_change() const {
  TimePoint next = kNever;
  for (const FlowTournament* each : {&limited_, &minimums_.by_time(), &debts_.holding()}) {
    if (!each->empty()) next = std::min(next, time_of(each->top_tag()));
  }
  return next;
}

void Sfq::expect(const Flow& flow, std::uint32_t index) {
  if (!flow.has_limit && !flow.has_min) anticipation_->expect(index, flow.tag);
}

void Sfq::expect_by_new_tag(std::uint32_t index) {
  if (anticipation_ && anticipation_->expects(index)) expect(flows_[index], index);
}

void Sfq::anticipate_after(const Flow& flow, const IoRequest& request, Cost cost, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  anticipation_->completed(index,
                           {.cost = cost,
                            .sent_as = request.cost,
                            .sent = request.sent,
                            .outstanding = static_cast<std::uint32_t>(outstanding_),
                            .is_backlogged = !order_.empty()},
                           now);
  const bool tag_is_new = cost < request.cost;
  if (flow.queue.empty() && (tag_is_new || !anticipation_->expects(index))) expect(flow, index);
}

}  // namespace vpfs
