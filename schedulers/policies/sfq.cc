#include "schedulers/policies/sfq.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/wide.h"
#include "schedulers/time_tag.h"

namespace vpfs {
namespace {

std::unique_ptr<Policy> make_sfq(const SchedulerSettings& settings, RateLimits& limits,
                                 Scheduler::Part part) {
  return std::make_unique<Sfq>(limits, part.user, settings.own.of<AnticipationSettings>(),
                               part.total);
}

}  // namespace

constinit const PolicyKind Sfq::kKind = {.name = "sfq",
                                         .share_fields = {ShareField::rate, ShareField::operations,
                                                          ShareField::min, ShareField::realtime},
                                         .caps = true,
                                         .elsewhere = true,
                                         .make = make_sfq,
                                         .read = read_anticipation,
                                         .summary = summary_of_anticipation};

Result<void> Sfq::set_share(AppId app, const Share& share, TimePoint now) {
  VPFS_ASSERT(share.weight >= 1 && share.weight <= Share::kMaxWeight);
  const auto index = std::to_underlying(app);
  if (flows_.grow(app)) {
    order_.grow(flows_.size());
    crowds_.grow(flows_.size());
    if (!debts_.empty() || siblings_.exist()) grow_debts();
    if (anticipation_) anticipation_->grow(flows_.size());
    siblings_.grow(flows_.size());
  }
  Flow& flow = flows_[index];
  take_out(index);
  const bool was_expected = anticipation_ && anticipation_->expects(index);
  if (anticipation_) anticipation_->forget(index, now);
  flow.set_weight(share.weight);
  crowds_.set_weight(index, share.weight, now);
  const bool had_limit = set_has_limit(flow, app);
  tell_backlog(flow, index, now);
  const bool had_min = flow.has_min;
  flow.has_min = share.min.count > 0;
  if (flow.has_min) {
    minimums_.set(index, share.min.count, flows_.size(), now);
  } else if (had_min && !flow.in_debt) {
    // Service beyond the weight is not taken off later service by weight alone.
    flow.tag = std::min(flow.tag, order_.virtual_time());
  }
  if (flow.queue.empty()) {
    if (was_expected) expect(flow, index);
    return {};
  }
  // v may have passed it where a limit held it back. A claim stays, as far as the weight lets it.
  start_not_before(flow, most_behind(flow, anticipation_ && !had_limit, siblings_.exist()));
  place(index, now);
  return {};
}

bool Sfq::set_has_limit(Flow& flow, AppId app) {
  const bool had_one = flow.has_limit;
  flow.has_limit = limits_.limited(app);
  if (flow.has_limit) limited_.grow(flows_.size());
  return had_one;
}

bool Sfq::set_limits(AppId app, const Limits& limits, TimePoint now) {
  const auto index = std::to_underlying(app);
  Flow& flow = flows_[index];
  limits_.allocate(app, limits, now);
  const bool had_limit = set_has_limit(flow, app);
  if (!had_limit && !flow.has_limit) return true;
  if (anticipation_) anticipation_->forget(index, now);
  tell_backlog(flow, index, now);
  if (flow.queue.empty()) return true;
  start_not_before(flow, 0);  // as in set_share()
  place_again(index, now);
  return true;
}

void Sfq::remove(AppId app, TimePoint now) {
  // The next flow of this AppId inherits no debt.
  const auto index = std::to_underlying(app);
  if (index < flows_.size()) {
    flows_[index].in_debt = false;
    flows_[index].is_charged_elsewhere = !debts_.empty() && !siblings_.exist();
  }
  if (anticipation_) anticipation_->remove(index, now);
  if (index < debts_.size()) debts_.forget(index);
  siblings_.begin_anew(index);
  (void)set_share(app, {}, now);
  Flow& flow = flows_[index];
  if (flow.queue.empty()) {
    flow.tag = std::min(flow.tag, order_.virtual_time());
    return;
  }
  flow.tag = order_.virtual_time();
  place(index, now);
}

void Sfq::enqueue(IoRequest& request, TimePoint now) {
  VPFS_ASSERT(request.cost >= 1 && request.cost <= kMaxCost);
  end_busy_period_of_all();
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_.of(request);
  request.tag = flow.next_amount(request.cost);
  const Joined joined = flows_.push_back(flow, request);
  siblings_.arrived(index, request.cost, request.tag, now);
  const bool as_expected =
      anticipation_ && anticipation_->arrived(index, flow.account.queued + flow.account.outstanding,
                                              flow, order_.behind(flow), now);
  if (joined != Joined::as_head) {
    // A late request lets the head of an allocated flow, or of one in debt, pass earlier.
    if (joined == Joined::late && (flow.in_debt || limits_.is_allocated(request.app))) {
      if (flow.in_debt) debts_.shorten_hold(index, passes_at(index), now);
      place_again(index, now);
    }
    return;
  }
  crowds_.begin_queue(index, now);
  if (flow.has_limit) tell_backlog(flow, index, now);
  if (flow.has_min) minimums_.arrived(index, request.arrival);
  const bool from_siblings = siblings_.exist() && comes_from_siblings(flow, index, now);
  if (flow.tag <= order_.virtual_time()) {
    start_not_before(flow, most_behind(flow, as_expected, from_siblings));
    flow.in_debt = false;
  }
  begin_head(flow, index, now);
  // What siblings sent may have placed it already.
  siblings_.exist() ? place_again(index, now) : place(index, now);
}

void Sfq::tell_backlog(Flow& flow, std::uint32_t index, TimePoint now) {
  const bool has_one = flow.has_limit && !flow.queue.empty();
  if (flow.in_backlog == has_one) return;
  flow.in_backlog = has_one;
  has_one ? limits_.begin_backlog(AppId{index}, now) : limits_.end_backlog(AppId{index});
}

// REQUIRES: the flow may be in the order, with an old key, but is not set aside anywhere.
void Sfq::place(std::uint32_t index, TimePoint now) {
  Flow& flow = flows_[index];
  if (!flow.waits_by_order()) return place_constrained(flow, index, now);
  flows_.holds().wait_for_turn(index, now);
  change_tag(index, flow.tag);
}

void Sfq::place_constrained(Flow& flow, std::uint32_t index, TimePoint now) {
  const IoRequest& head = *flow.queue.front();
  TimePoint allowed = TimePoint::min();
  if (flow.has_limit) allowed = allowed_at(index, now);
  if (flow.has_min) minimums_.put(index, head, allowed);
  if (allowed > now) {
    flows_.holds().wait_for_limit(index, allowed, now);
    order_.erase(index);
    limited_.put(index, {.tag = time_tag(allowed), .order = head.order});
  } else {
    flows_.holds().wait_for_turn(index, now);
    flow.tag = std::max(flow.tag, order_.virtual_time());
    place_in_order(index, now);
  }
}

void Sfq::place_in_order(std::uint32_t index, TimePoint now) {
  const Flow& flow = flows_[index];
  const bool is_held = flow.in_debt && debts_.holds(index, now);
  change_tag(index, !flow.in_debt || is_held ? flow.tag : tag_without_debt(index));
  if (is_held == debts_.is_held(index)) return;
  is_held ? debts_.hold(index, flow.queue.front()->order) : debts_.release(index);
}

void Sfq::tag_has_changed(std::uint32_t index) {
  const bool is_free = flows_[index].in_debt && !debts_.is_held(index);
  change_tag(index, is_free ? tag_without_debt(index) : flows_[index].tag);
}

void Sfq::take_out(std::uint32_t index) {
  order_.erase(index);
  limited_.erase(index);
  minimums_.erase(index);
  debts_.release(index);
}

// Flows whose limit allows their head by now join the order of the tags. Another policy may have
// used the tokens; then they are requeued.
void Sfq::allow_due(TimePoint now) {
  while (!limited_.empty() && time_of(limited_.top_tag()) <= now) {
    const std::uint32_t index = limited_.top();
    if (flows_[index].in_debt) {
      place_again(index, now);
      continue;
    }
    limited_.erase(index);
    place(index, now);
    next_due_.after(index, limited_, flows_,
                    [this](std::uint32_t flow) { prefetch_rows_of(flow); });
  }
}

Policy::Head Sfq::head(TimePoint now) {
  for (;;) {
    allow_due(now);
    end_holds_by_debt(now);
    by_minimum_ = minimums_.is_due(now);
    if (!by_minimum_ && order_.empty()) {
      if (anticipation_) {
        anticipation_->starved();
        anticipation_->slot_is_used(now);
      }
      return {.until = limited_.empty() ? kNever : time_of(limited_.top_tag())};
    }
    const std::uint32_t index = by_minimum_ ? minimums_.top() : order_.top();
    if (siblings_.exist() && catch_up(index, now)) continue;
    if (anticipation_) {
      const TimePoint until = by_minimum_ ? TimePoint::min() : slot_kept_until(now);
      if (until > now) {
        return {.until = std::min(until, next_change()), .kept_back = flows_[index].queue.front()};
      }
      anticipation_->slot_is_used(now);
    }
    if (!flows_[index].has_limit || !limits_.may_have_changed() || allowed_at(index, now) <= now) {
      return {.request = flows_[index].queue.front()};
    }
    place_again(index, now);
  }
}

void Sfq::dispatch(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_[index];
  flows_.dispatch(flow, request, now);
  ++outstanding_;
  if (anticipation_) anticipation_->sent(index, request.cost, request.tag, now);
  if (flow.waits_by_order() && !flow.is_charged_elsewhere) {
    order_.sent(flow.tag);
    flow.tag += request.tag;
    order_.finishes(flow.tag);
  } else {
    charge_constrained(flow, index, request, now);
  }
  siblings_.served(index, request.tag);
  if (flow.queue.empty()) {
    order_.erase(index);
    if (flow.has_min) minimums_.erase(index);
    end_queue(flow, index, true, now);
    if (anticipation_) expect(flow, index);
  } else {
    flow.use_credit(request.tag);
    begin_head(flow, index, now);
    place(index, now);
  }
  if (order_.needs_rebase()) rebase();
  const FlowTournament& served_by = by_minimum_ ? minimums_.by_time() : order_.ready();
  next_sent_.after(
      index, served_by, flows_, [this](std::uint32_t flow) { prefetch_rows_of(flow); },
      [this](std::uint32_t flow) { crowds_.prefetch(flow); });
}

void Sfq::charge_constrained(Flow& flow, std::uint32_t index, IoRequest& request, TimePoint now) {
  if (flow.has_limit) limits_.take(request, user_, now);
  if (flow.has_min) minimums_.served(index, request, now);
  if (flow.in_debt) debts_.release(index);
  if (by_minimum_) {
    // Only what was added to S can be given back.
    request.tag = move_ahead(flow, request.tag, order_.ahead(flow, kMaxReserved) + request.tag);
  } else {
    const Tag start = flow.in_debt ? order_.top_tag() : flow.tag;
    // A minimum put the flow ahead.
    if (flow.has_min && start > order_.virtual_time() + request.tag) order_.pass_over(start);
    order_.sent(start);
    if (flow.in_debt) {
      debts_.owe(index, StartTag::subtract_to_zero(flow.tag, order_.virtual_time()));
      flow.in_debt = debts_.owed(index) > 0;
    }
    flow.tag += request.tag;
    if (flow.is_charged_elsewhere) charge_in_advance(flow, index, request);
  }
  // An idle moment does not pay a debt.
  order_.finishes(flow.in_debt ? tag_without_debt(index) : flow.tag);
}

void Sfq::end_queue(Flow& flow, std::uint32_t index, bool is_at_server, TimePoint now) {
  flow.end_backlog();
  crowds_.end_queue(index, is_at_server, now);
  if (flow.in_backlog) tell_backlog(flow, index, now);
}

// Fetches all rows that dispatch() will touch for the head of a flow.
void Sfq::prefetch_rows_of(std::uint32_t index) const {
  flows_.prefetch(index);
  order_.prefetch(index);
  if (anticipation_) anticipation_->prefetch(index);
  if (limits_.size() == 0) return;
  limits_.prefetch(index);
  minimums_.prefetch(index);
  if (limited_.has_place_for(index)) limited_.prefetch(index);
}

void Sfq::complete(const IoRequest& request, Cost cost, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_.of(request);
  flow.account.completed();
  --outstanding_;
  if (flow.account.queued + flow.account.outstanding == 0) crowds_.leave(index, now);
  siblings_.left(index, 1, now);
  if (cost < request.cost) {
    const Cost not_done = request.cost - cost;
    give_back(flow, index, static_cast<Tag>(Wide{request.tag} * not_done / request.cost));
  }
  if (anticipation_) anticipate_after(flow, request, cost, now);
  end_busy_period_if_idle();
}

void Sfq::give_back(Flow& flow, std::uint32_t index, Tag amount) {
  flow.give_back(amount, order_.virtual_time(), !flow.queue.empty());
  siblings_.gave_back(index, amount);
  if (order_.contains(index)) tag_has_changed(index);
}

Sfq::Tag Sfq::move_ahead(Flow& flow, Tag by, Tag latest) {
  const Tag before = flow.tag;
  flow.tag = std::max(before, std::min(before + by, latest));
  VPFS_ASSERT(flow.tag < Tag{1} << 63);
  return flow.tag - before;
}

void Sfq::charge_more(const IoRequest& request, Cost cost, TimePoint /*now*/) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_[index];
  const Tag amount = flow.next_amount(std::min(cost, kMaxCost));
  siblings_.served(index, move_ahead(flow, amount, order_.ahead(flow, kMaxCost)));
  if (order_.contains(index)) tag_has_changed(index);
  expect_by_new_tag(index);
}

void Sfq::withdraw(IoRequest& request, TimePoint now) {
  Flow& flow = flows_.of(request);
  const bool was_head = flows_.withdraw(flow, request, now);
  const auto index = std::to_underlying(request.app);
  siblings_.left(index, 1, now);
  if (was_head) take_out(index);
  if (was_head && flow.has_limit) limits_.give_up(request.app, user_);
  if (flow.queue.empty()) {
    end_queue(flow, index, flow.account.outstanding > 0, now);
  } else if (was_head) {
    begin_head(flow, index, now);
    place(index, now);
  }
  // No request is kept back any more.
  if (anticipation_ && order_.empty()) anticipation_->slot_is_used(now);
  end_busy_period_if_idle();
}

void Sfq::let_pass(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_[index];
  if (flow.has_limit) limits_.take(request, user_, now);
  withdraw(request, now);
  charge_more(request, request.cost, now);
  if (flow.has_limit && !flow.queue.empty()) place_again(index, now);
}

void Sfq::end_busy_period() {
  order_.end_busy_period();
  if (order_.needs_rebase()) rebase();
}

void Sfq::rebase() {
  order_.rebase(flows_);
  if (anticipation_) anticipation_->forget_all();
}

StatusFields Sfq::report(AppId app, TimePoint now) const {
  StatusFields fields = limits_.report(app, now);
  if (anticipation_) fields.join(anticipation_->report(std::to_underlying(app), now));
  return fields;
}

WaitReason Sfq::why_waiting(AppId app, TimePoint now) const {
  const auto index = std::to_underlying(app);
  const IoRequest& request = *flows_[index].queue.front();
  if (flows_[index].has_limit) {
    const WaitReason why =
        limits_.why_waiting(request, flows_.oldest_arrival(index), "its rate limit", now);
    if (why.eligible) return why;
  }
  if (minimums_.is_due(now)) {
    if (minimums_.top() == index) return {.reason = kIsNext};
    return {.reason = "flows that have not had their minimum go first"};
  }
  if (!order_.empty() && order_.top() == index) {
    if (!anticipation_ || !anticipation_->is_keeping()) return {.reason = kIsNext};
  }
  if (anticipation_ && anticipation_->is_keeping()) {
    return {.reason = kSlotIsKept, .kept_for = AppId{anticipation_->kept_for()}};
  }
  if (debts_.is_held(index)) return {.reason = "it got more than its share elsewhere"};
  return {.reason = "flows that had less for their weight go first"};
}

}  // namespace vpfs
