#include "schedulers/sfq.h"

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

void Sfq::Minimum::served(const IoRequest& request, TimePoint now) {
  // A request without bytes (metadata) counts by its cost.
  const Duration spacing =
      time_for(request.size.count > 0 ? request.size.count : request.cost, rate);
  due = std::clamp(due, now - std::max(spacing, kMostDebt), now) + spacing;
}

Result<void> Sfq::set_share(AppId app, const Share& share, TimePoint now) {
  VPFS_ASSERT(share.weight >= 1 && share.weight <= Share::kMaxWeight);
  const auto index = std::to_underlying(app);
  if (flows_.grow(app)) {
    ready_.grow(flows_.size());
    crowds_.grow(flows_.size());
    if (!debts_.empty() || total_ != nullptr) grow_debts();
    if (anticipation_) anticipation_->grow(flows_.size());
    grow_siblings();
  }
  Flow& flow = flows_[index];
  take_out(index);
  const bool was_expected = anticipation_ && anticipation_->expects(index);
  if (anticipation_) anticipation_->forget(index, now);
  flow.set_weight(share.weight);
  crowds_.set_weight(index, share.weight, now);
  const bool had_limit = std::exchange(flow.has_limit, limits_.limited(app));
  if (flow.has_limit) limited_.grow(flows_.size());
  tell_backlog(flow, index, now);
  const bool had_min = std::exchange(flow.has_min, share.min.count > 0);
  if (flow.has_min) {
    reserved_.grow(flows_.size());
    if (index >= minimums_.size()) minimums_.resize(std::size_t{index} + 1);
    minimums_[index] = {.rate = Divider(share.min.count), .due = now};
  } else if (had_min && !flow.in_debt) {
    // Service beyond the weight is not taken off later service by weight alone.
    flow.tag = std::min(flow.tag, virtual_time_);
  }
  if (flow.queue.empty()) {
    if (was_expected) expect(flow, index);
    return {};
  }
  // v may have passed it where a limit held it back. A claim stays, as far as the weight lets it.
  const Tag most = most_behind(flow, anticipation_ && !had_limit, total_ != nullptr);
  flow.tag = std::max(flow.tag, tag_of_first(flow, most));
  place(index, now);
  return {};
}

bool Sfq::set_limits(AppId app, const Limits& limits, TimePoint now) {
  const auto index = std::to_underlying(app);
  Flow& flow = flows_[index];
  limits_.allocate(app, limits, now);
  const bool had_limit = std::exchange(flow.has_limit, limits_.limited(app));
  if (!had_limit && !flow.has_limit) return true;
  if (anticipation_) anticipation_->forget(index, now);
  limited_.grow(flows_.size());
  tell_backlog(flow, index, now);
  if (flow.queue.empty()) return true;
  flow.tag = std::max(flow.tag, virtual_time_);  // as in set_share()
  place_again(index, now);
  return true;
}

void Sfq::remove(AppId app, TimePoint now) {
  // The next flow of this AppId inherits no debt.
  const auto index = std::to_underlying(app);
  if (index < flows_.size()) flows_[index].in_debt = false;
  if (anticipation_) anticipation_->remove(index, now);
  if (index < debts_.size()) debts_[index] = {};
  if (index < seen_.size()) seen_[index].served = (*total_)[index].served;
  (void)set_share(app, {}, now);
  Flow& flow = flows_[index];
  if (flow.queue.empty()) {
    flow.tag = std::min(flow.tag, virtual_time_);
    return;
  }
  flow.tag = virtual_time_;
  place(index, now);
}

void Sfq::enqueue(IoRequest& request, TimePoint now) {
  VPFS_ASSERT(request.cost >= 1 && request.cost <= kMaxCost);
  end_busy_period_of_all();
  Flow& flow = flows_.of(request);
  request.tag = flow.next_amount(request.cost);
  const Joined joined = flows_.push_back(flow, request);
  if (total_ != nullptr) {
    total_->arrived(std::to_underlying(request.app), now);
    siblings_bound_.sent(request.cost, request.tag);
  }
  const bool as_expected =
      anticipation_ &&
      anticipation_->arrived(std::to_underlying(request.app),
                             flow.account.queued + flow.account.outstanding, flow,
                             StartTag::subtract_to_zero(virtual_time_, flow.tag), now);
  if (!ready_.empty()) __builtin_prefetch(flows_[ready_.top()].queue.front()->next_queued);
  if (joined != Joined::as_head) {
    // A late request lets the head of an allocated flow, or of one in debt, pass earlier.
    const auto index = std::to_underlying(request.app);
    if (joined == Joined::late && (flow.in_debt || limits_.is_allocated(request.app))) {
      if (flow.in_debt)
        debts_[index].due = std::min(debts_[index].due, debt_lets_go_at(index, now));
      place_again(index, now);
    }
    return;
  }
  crowds_.begin_queue(std::to_underlying(request.app), now);
  if (flow.has_limit) tell_backlog(flow, std::to_underlying(request.app), now);
  if (flow.has_min) {
    Minimum& minimum = minimums_[std::to_underlying(request.app)];
    minimum.due = std::max(minimum.due, request.arrival);
  }
  const bool from_siblings =
      total_ != nullptr && comes_from_siblings(flow, std::to_underlying(request.app), now);
  if (flow.tag <= virtual_time_) {
    flow.tag = tag_of_first(flow, most_behind(flow, as_expected, from_siblings));
    flow.in_debt = false;
  }
  begin_head(flow, std::to_underlying(request.app), now);
  const auto index = std::to_underlying(request.app);
  // What the others served may have placed it already.
  total_ != nullptr ? place_again(index, now) : place(index, now);
}

Sfq::Tag Sfq::tag_of_first(const Flow& flow, Tag most_behind) const {
  if (most_behind == 0 || flow.has_limit || flow.has_min) return virtual_time_;
  const Tag least = StartTag::subtract_to_zero(virtual_time_, most_behind);
  return std::max({flow.tag, least, idle_time_});
}

void Sfq::begin_head(Flow& flow, std::uint32_t index, TimePoint now) {
  if (flow.in_debt) debts_[index].due = debt_lets_go_at(index, now);
}

void Sfq::tell_backlog(Flow& flow, std::uint32_t index, TimePoint now) {
  const bool has_one = flow.has_limit && !flow.queue.empty();
  if (std::exchange(flow.in_backlog, has_one) == has_one) return;
  has_one ? limits_.begin_backlog(AppId{index}, now) : limits_.end_backlog(AppId{index});
}

// REQUIRES: the flow has a head; it may be in ready_ with an old key, but in no other heap.
void Sfq::place(std::uint32_t index, TimePoint now) {
  const Flow& flow = flows_[index];
  const IoRequest& request = *flow.queue.front();
  if (flow.has_limit || flow.has_min || flow.in_debt) return place_constrained(index, request, now);
  flows_.holds().wait_for_turn(index, now);
  change_tag(index, flow.tag);
}

void Sfq::place_constrained(std::uint32_t index, const IoRequest& request, TimePoint now) {
  Flow& flow = flows_[index];
  TimePoint allowed = TimePoint::min();
  if (flow.has_limit) allowed = allowed_at(index, now);
  if (flow.has_min) {
    const TimePoint due = std::max(minimums_[index].due, allowed);
    reserved_.push(index, {.tag = time_tag(due), .order = request.order});
  }
  if (allowed > now) {
    flows_.holds().wait_for_limit(index, allowed, now);
    if (ready_.contains(index)) ready_.erase(index);
    limited_.push(index, {.tag = time_tag(allowed), .order = request.order});
  } else {
    flows_.holds().wait_for_turn(index, now);
    flow.tag = std::max(flow.tag, virtual_time_);
    place_in_order(index, now);
  }
}

void Sfq::place_in_order(std::uint32_t index, TimePoint now) {
  const Flow& flow = flows_[index];
  if (!flow.in_debt) {
    if (indebted_.contains(index)) indebted_.erase(index);
    return change_tag(index, flow.tag);
  }
  const bool is_held = debts_[index].due > now;
  change_tag(index, is_held ? flow.tag : tag_without_debt(index));
  if (is_held == indebted_.contains(index)) return;
  const FlowHeap::Key due = {.tag = time_tag(debts_[index].due),
                             .order = flow.queue.front()->order};
  is_held ? indebted_.push(index, due) : indebted_.erase(index);
}

void Sfq::tag_has_changed(std::uint32_t index) {
  const bool is_free = flows_[index].in_debt && !indebted_.contains(index);
  change_tag(index, is_free ? tag_without_debt(index) : flows_[index].tag);
}

void Sfq::take_out(std::uint32_t index) {
  for (FlowHeap* heap : {&ready_, &limited_, &reserved_, &indebted_}) {
    if (heap->contains(index)) heap->erase(index);
  }
}

void Sfq::change_tag(std::uint32_t index, Tag tag) {
  const FlowHeap::Key key = {.tag = tag, .order = flows_[index].queue.front()->order};
  ready_.contains(index) ? ready_.update(index, key) : ready_.push(index, key);
}

// Flows whose limit allows their head by now join the order of the tags. Another policy may have
// used the tokens; then they are requeued.
void Sfq::allow_due(TimePoint now) {
  while (!limited_.empty() && time_of(limited_.top_tag()) <= now) {
    place_again(limited_.top(), now);
  }
}

bool Sfq::reservation_is_due(TimePoint now) {
  return !reserved_.empty() && time_of(reserved_.top_tag()) <= now;
}

Policy::Head Sfq::head(TimePoint now) {
  for (;;) {
    allow_due(now);
    end_holds_by_debt(now);
    by_reservation_ = reservation_is_due(now);
    if (!by_reservation_ && ready_.empty()) {
      if (anticipation_) {
        anticipation_->starved();
        anticipation_->slot_is_used(now);
      }
      return {.until = limited_.empty() ? kNever : time_of(limited_.top_tag())};
    }
    const std::uint32_t index = by_reservation_ ? reserved_.top() : ready_.top();
    if (total_ != nullptr && catch_up(index, now)) continue;
    if (anticipation_) {
      const TimePoint until = by_reservation_ ? TimePoint::min() : slot_kept_until(now);
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

TimePoint Sfq::next_change() const {
  TimePoint next = kNever;
  for (const FlowHeap* heap : {&limited_, &reserved_, &indebted_}) {
    if (!heap->empty()) next = std::min(next, time_of(heap->top_tag()));
  }
  return next;
}

TimePoint Sfq::slot_kept_until(TimePoint now) {
  while (anticipation_->is_before(ready_.top_tag())) {
    const std::uint32_t next = anticipation_->next();
    if (total_ != nullptr && catch_up(next, now)) continue;
    const TimePoint until = anticipation_->keep_until(
        flows_[next].account.outstanding, static_cast<std::uint32_t>(outstanding_), now);
    if (until == TimePoint::min()) continue;
    if (until <= now) break;
    anticipation_->slot_is_kept(next, now);
    return until;
  }
  return now;
}

void Sfq::expect_by_new_tag(std::uint32_t index) {
  if (anticipation_ && anticipation_->expects(index)) expect(flows_[index], index);
}

void Sfq::expect(const Flow& flow, std::uint32_t index) {
  if (!flow.has_limit && !flow.has_min) anticipation_->expect(index, flow.tag);
}

void Sfq::dispatch(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_[index];
  flows_.dispatch(flow, request, now);
  ++outstanding_;
  if (anticipation_) {
    anticipation_->slot_is_used(now);
    anticipation_->sent(index, request.cost, request.tag, now);
  }
  if (flow.has_limit) limits_.take(request, user_, now);
  if (flow.has_min) {
    reserved_.erase(index);
    minimums_[index].served(request, now);
  }
  if (flow.in_debt && indebted_.contains(index)) indebted_.erase(index);
  if (by_reservation_) {
    // Only what was added to S can be given back.
    request.tag = move_ahead(flow, request.tag, ahead(flow, kMaxReserved) + request.tag);
  } else {
    const Tag start = flow.in_debt ? ready_.top_tag() : flow.tag;
    // A minimum put the flow ahead. What v passes over now was served to nobody, so nobody has a
    // claim on it.
    if (flow.has_min && start > virtual_time_ + request.tag) idle_time_ = start;
    // A flow that came back as expected may be behind.
    virtual_time_ = std::max(virtual_time_, start);
    if (flow.in_debt) {
      debts_[index].owed = StartTag::subtract_to_zero(flow.tag, virtual_time_);
      flow.in_debt = debts_[index].owed > 0;
    }
    flow.tag += request.tag;
    const bool counts = total_ == nullptr ? index < debts_.size() : debts_[index].counts;
    if (counts) charge_in_advance(flow, index, request);
  }
  tell_siblings(index, request.tag);
  // An idle moment does not pay a debt.
  largest_finish_ = std::max(largest_finish_, flow.in_debt ? tag_without_debt(index) : flow.tag);
  if (flow.queue.empty()) {
    flow.end_backlog();
    ready_.erase(index);
    crowds_.end_queue(index, true, now);
    if (flow.in_backlog) tell_backlog(flow, index, now);
    if (anticipation_) expect(flow, index);
  } else {
    flow.use_credit(request.tag);
    begin_head(flow, index, now);
    place(index, now);
  }
  if (virtual_time_ > StartTag::kRebaseAt) rebase();
  if (ready_.empty()) return;
  flows_.prefetch(ready_.top());
  if (anticipation_) anticipation_->prefetch(ready_.top());
}

void Sfq::prefetch() const {
  if (!ready_.empty()) __builtin_prefetch(flows_[ready_.top()].queue.front());
}

void Sfq::complete(const IoRequest& request, Cost cost, TimePoint now) {
  Flow& flow = flows_.of(request);
  flow.account.completed();
  --outstanding_;
  if (flow.account.queued + flow.account.outstanding == 0) {
    crowds_.leave(std::to_underlying(request.app), now);
  }
  if (total_ != nullptr) total_->left(std::to_underlying(request.app), 1, now);
  if (cost < request.cost) {
    const Cost not_done = request.cost - cost;
    give_back(flow, std::to_underlying(request.app),
              static_cast<Tag>(Wide{request.tag} * not_done / request.cost));
  }
  if (anticipation_) {
    const auto index = std::to_underlying(request.app);
    anticipation_->completed(index,
                             {.cost = cost,
                              .sent_as = request.cost,
                              .sent = request.sent,
                              .outstanding = static_cast<std::uint32_t>(outstanding_),
                              .is_backlogged = !ready_.empty()},
                             now);
    const bool tag_is_new = cost < request.cost;
    if (flow.queue.empty() && (tag_is_new || !anticipation_->expects(index))) expect(flow, index);
  }
  end_busy_period_if_idle();
}

void Sfq::give_back(Flow& flow, std::uint32_t index, Tag amount) {
  flow.give_back(amount, virtual_time_, !flow.queue.empty());
  if (total_ != nullptr) {
    total_->gave_back(index, amount);
    seen_[index].served -= amount;
  }
  if (ready_.contains(index)) tag_has_changed(index);
}

Sfq::Tag Sfq::ahead(const Flow& flow, Cost cost) const {
  return virtual_time_ + flow.amount_of(cost);
}

// Moves S for service that was not given by S, but not beyond `latest`. Returns the distance.
Sfq::Tag Sfq::move_ahead(Flow& flow, Tag by, Tag latest) {
  const Tag before = flow.tag;
  flow.tag = std::max(before, std::min(before + by, latest));
  VPFS_ASSERT(flow.tag < Tag{1} << 63);
  return flow.tag - before;
}

void Sfq::charge_more(const IoRequest& request, Cost cost) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_[index];
  tell_siblings(
      index, move_ahead(flow, flow.next_amount(std::min(cost, kMaxCost)), ahead(flow, kMaxCost)));
  if (ready_.contains(index)) tag_has_changed(index);
  expect_by_new_tag(index);
}

void Sfq::withdraw(IoRequest& request, TimePoint now) {
  Flow& flow = flows_.of(request);
  const bool was_head = flows_.withdraw(flow, request, now);
  const auto index = std::to_underlying(request.app);
  if (total_ != nullptr) total_->left(index, 1, now);
  if (flow.queue.empty()) {
    flow.end_backlog();
    take_out(index);
    crowds_.end_queue(index, flow.account.outstanding > 0, now);
    if (flow.in_backlog) tell_backlog(flow, index, now);
  } else if (was_head) {
    take_out(index);
    begin_head(flow, index, now);
    place(index, now);
  }
  if (anticipation_ && ready_.empty()) anticipation_->slot_is_used(now);  // nobody is kept back
  end_busy_period_if_idle();
}

void Sfq::let_pass(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_[index];
  if (flow.has_limit) limits_.take(request, user_, now);
  withdraw(request, now);
  charge_more(request, request.cost);
  if (flow.has_limit && !flow.queue.empty()) place_again(index, now);
}

void Sfq::end_busy_period_if_idle() {
  if (total_ != nullptr || flows_.queued() != 0 || outstanding_ != 0) return;
  end_busy_period();
}

void Sfq::end_busy_period() {
  virtual_time_ = std::max(virtual_time_, largest_finish_);
  idle_time_ = virtual_time_;
  if (virtual_time_ > StartTag::kRebaseAt) rebase();
}

void Sfq::rebase() {
  // Flows that came back may be behind v; then only what all are beyond is taken off.
  const Tag base = ready_.empty() ? virtual_time_ : std::min(virtual_time_, ready_.top_tag());
  for (Flow& flow : flows_) flow.rebase(base);
  ready_.subtract(base);
  largest_finish_ = StartTag::subtract_to_zero(largest_finish_, base);
  idle_time_ = StartTag::subtract_to_zero(idle_time_, base);
  virtual_time_ -= base;
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
  if (!reserved_.empty() && time_of(reserved_.top_tag()) <= now) {
    if (reserved_.top() == index) return {.reason = kIsNext};
    return {.reason = "flows that have not had their minimum go first"};
  }
  if (!ready_.empty() && ready_.top() == index) {
    if (!anticipation_ || !anticipation_->is_keeping()) return {.reason = kIsNext};
  }
  if (anticipation_ && anticipation_->is_keeping()) {
    return {.reason = kSlotIsKept, .kept_for = AppId{anticipation_->kept_for()}};
  }
  if (indebted_.contains(index)) return {.reason = "it got more than its share elsewhere"};
  return {.reason = "flows that had less for their weight go first"};
}

}  // namespace vpfs
