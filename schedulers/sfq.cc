#include "schedulers/sfq.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "schedulers/time_tag.h"

namespace vpfs {
namespace {

__extension__ using Wide = unsigned __int128;

// Keeps times from overflowing.
constexpr Duration kLongestDelay = Duration(std::int64_t{1} << 60);
// The ratio of service elsewhere to service here.
constexpr int kRatioBits = 16;
constexpr std::uint64_t kMostRatio = 1024;
constexpr Cost kLately = 8;           // spans, about
constexpr Cost kLeastSpan = 8;        // requests, here and elsewhere
constexpr std::uint8_t kToLearn = 3;  // spans: one from before, one to count, one without charge
constexpr StartTag::Tag kGently = 4;  // the part of a difference that counts
// Keeps sums of debts from overflowing; the distance of a tag from v is bounded anyway.
constexpr StartTag::Tag kMostOwed = StartTag::Tag{1} << 60;

std::unique_ptr<Policy> make(const SchedulerSettings&, RateLimits& limits, Scheduler::Part part) {
  return std::make_unique<Sfq>(limits, part.user);
}

}  // namespace

constinit const PolicyKind Sfq::kKind = {.name = "sfq",
                                         .share_fields = {ShareField::rate, ShareField::operations,
                                                          ShareField::min, ShareField::realtime},
                                         .caps = true,
                                         .elsewhere = true,
                                         .make = make};

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
    if (!debts_.empty()) grow_debts();
  }
  Flow& flow = flows_[index];
  take_out(index);
  flow.set_weight(share.weight);
  flow.has_limit = limits_.limited(app);
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
  if (flow.queue.empty()) return {};
  flow.tag = std::max(flow.tag, virtual_time_);  // v may have passed it where a limit held it back
  place(index, now);
  return {};
}

bool Sfq::set_limits(AppId app, const Limits& limits, TimePoint now) {
  const auto index = std::to_underlying(app);
  Flow& flow = flows_[index];
  limits_.allocate(app, limits, now);
  const bool had_limit = std::exchange(flow.has_limit, limits_.limited(app));
  if (!had_limit && !flow.has_limit) return true;
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
  if (index < debts_.size()) debts_[index] = {};
  (void)set_share(app, {}, now);
  Flow& flow = flows_[index];
  flow.tag = std::min(flow.tag, virtual_time_);
  if (!flow.queue.empty()) place(index, now);
}

void Sfq::enqueue(IoRequest& request, TimePoint now) {
  VPFS_ASSERT(request.cost >= 1 && request.cost <= kMaxCost);
  Flow& flow = flows_.of(request);
  request.tag = flow.next_amount(request.cost);
  const Joined joined = flows_.push_back(flow, request);
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
  if (flow.has_limit) tell_backlog(flow, std::to_underlying(request.app), now);
  if (flow.has_min) {
    Minimum& minimum = minimums_[std::to_underlying(request.app)];
    minimum.due = std::max(minimum.due, request.arrival);
  }
  if (flow.tag <= virtual_time_) {
    flow.tag = virtual_time_;
    flow.in_debt = false;
  }
  begin_head(flow, std::to_underlying(request.app), now);
  place(std::to_underlying(request.app), now);
}

void Sfq::begin_head(Flow& flow, std::uint32_t index, TimePoint now) {
  if (flow.in_debt) debts_[index].due = debt_lets_go_at(index, now);
}

TimePoint Sfq::debt_lets_go_at(std::uint32_t index, TimePoint now) const {
  return std::min(now + debts_[index].delay, limits_.passes_at(flows_.oldest_arrival(index)));
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
  if (!flow.in_debt) return change_tag(index, flow.tag);
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

Sfq::Tag Sfq::tag_without_debt(std::uint32_t index) const {
  return std::max(virtual_time_, StartTag::subtract_to_zero(flows_[index].tag, debts_[index].owed));
}

void Sfq::end_holds_by_debt(TimePoint now) {
  while (!indebted_.empty() && time_of(indebted_.top_tag()) <= now) {
    place_in_order(indebted_.top(), now);
  }
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
      return {.until = limited_.empty() ? kNever : time_of(limited_.top_tag())};
    }
    const std::uint32_t index = by_reservation_ ? reserved_.top() : ready_.top();
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
    virtual_time_ = flow.in_debt ? ready_.top_tag() : flow.tag;
    if (flow.in_debt) {
      debts_[index].owed = flow.tag - virtual_time_;
      flow.in_debt = debts_[index].owed > 0;
    }
    flow.tag += request.tag;
    if (index < debts_.size()) charge_in_advance(flow, index, request);
  }
  // An idle moment does not pay a debt.
  largest_finish_ = std::max(largest_finish_, flow.in_debt ? tag_without_debt(index) : flow.tag);
  if (flow.queue.empty()) {
    flow.end_backlog();
    ready_.erase(index);
    if (flow.in_backlog) tell_backlog(flow, index, now);
  } else {
    flow.use_credit(request.tag);
    begin_head(flow, index, now);
    place(index, now);
  }
  if (virtual_time_ > StartTag::kRebaseAt) rebase();
  if (!ready_.empty()) flows_.prefetch(ready_.top());
}

void Sfq::prefetch() const {
  if (!ready_.empty()) __builtin_prefetch(flows_[ready_.top()].queue.front());
}

void Sfq::complete(const IoRequest& request, Cost cost, TimePoint /*now*/) {
  Flow& flow = flows_.of(request);
  flow.account.completed();
  --outstanding_;
  if (cost < request.cost) {
    const Cost not_done = request.cost - cost;
    give_back(flow, std::to_underlying(request.app),
              static_cast<Tag>(Wide{request.tag} * not_done / request.cost));
  }
  end_busy_period_if_idle();
}

void Sfq::give_back(Flow& flow, std::uint32_t index, Tag amount) {
  flow.give_back(amount, virtual_time_, !flow.queue.empty());
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

void Sfq::grow_debts() {
  debts_.resize(flows_.size());
  indebted_.grow(flows_.size());
}

void Sfq::served_elsewhere(AppId app, Cost cost, Duration delay, TimePoint now) {
  if (debts_.empty()) grow_debts();
  const auto index = std::to_underlying(app);
  Flow& flow = flows_[index];
  Debt& debt = debts_[index];
  debt.delay = std::clamp(delay, Duration::zero(), kLongestDelay);
  if (!debt.take_report(std::min(cost, kMaxCost))) return;
  flow.tag = std::max(flow.tag, virtual_time_);
  const Tag all = flow.next_amount(std::min(debt.span.elsewhere, kMaxCost));
  const Tag charged = debt.span.charged;
  debt.close_span(all);
  Tag before = flow.in_debt ? flow.tag - tag_without_debt(index) : 0;
  const Tag part = debt.is_charged_well() ? kGently : 1;
  if (debt.is_learning()) {
    // Nothing could be charged in advance for that time.
  } else if (all >= charged) {
    const Tag room = StartTag::subtract_to_zero(debt.most, before);
    before += move_ahead(flow, std::min((all - charged) / part, room), ahead(flow, kMaxCost));
  } else {
    const Tag over = (charged - all) / part;
    const Tag back = std::min(over, before);
    flow.tag -= back;
    before -= back;
    debt.overcharged = std::min(debt.overcharged + (over - back), debt.most);
  }
  debt.owed = before;
  if (debt.owed == 0) {
    if (std::exchange(flow.in_debt, false) && !flow.queue.empty()) place_again(index, now);
    return;
  }
  if (flow.queue.empty()) {
    flow.in_debt = true;
    return;
  }
  const TimePoint due = debt_lets_go_at(index, now);
  debt.due = std::exchange(flow.in_debt, true) ? std::min(debt.due, due) : due;
  place_again(index, now);
}

bool Sfq::Debt::take_report(Cost elsewhere) {
  const bool is_first = !std::exchange(counts, true);
  const Sent matching = std::exchange(before, std::exchange(sent, {}));
  if (is_first && elsewhere == 0) {
    learning = kToLearn;
    return false;
  }
  span.own += matching.own;
  span.charged = std::min(span.charged + matching.charged, kMostOwed);
  span.elsewhere = std::min(span.elsewhere + elsewhere, kMaxCost);
  if (span.elsewhere == 0 && span.charged == 0) return false;
  return span.own + span.elsewhere >= kLeastSpan * request;
}

void Sfq::Debt::close_span(Tag reported) {
  const Span done = std::exchange(span, {});
  // Who is sent nothing here has nothing to learn from.
  if (learning > 0) learning = done.own + before.own > 0 ? learning - 1 : 0;
  if (reported > 0)
    most = std::max(most - most / kLately, std::min(kMostReports * reported, kMostOwed));
  if (done.own == 0 && lately.own == 0) return;
  lately.own += done.own - lately.own / kLately;
  lately.elsewhere += done.elsewhere - lately.elsewhere / kLately;
  lately.charged += done.charged / kLately - lately.charged / kLately;
  reported_lately += reported / kLately - reported_lately / kLately;
  if (lately.own == 0) return;
  ratio = std::min((lately.elsewhere << kRatioBits) / lately.own, kMostRatio << kRatioBits);
}

void Sfq::charge_in_advance(Flow& flow, std::uint32_t index, const IoRequest& request) {
  Debt& debt = debts_[index];
  debt.request = request.cost;
  debt.sent.own = std::min(debt.sent.own + request.cost, kMaxCost);
  const Wide exact = Wide{request.tag} * debt.ratio >> kRatioBits;
  auto wanted = static_cast<Tag>(std::min<Wide>(exact, debt.most));
  const Tag less = std::min(wanted, debt.overcharged);
  debt.overcharged -= less;
  const Tag before = flow.in_debt ? debt.owed : 0;
  const Tag more = std::min(wanted - less, StartTag::subtract_to_zero(debt.most, before));
  debt.sent.charged = std::min(debt.sent.charged + more + less, kMostOwed);
  if (more == 0) return;
  flow.tag += more;
  debt.owed = before + more;
  flow.in_debt = true;
}

void Sfq::forget_elsewhere(TimePoint now) {
  for (std::uint32_t index = 0; index < debts_.size(); ++index) {
    Flow& flow = flows_[index];
    if (flow.in_debt) flow.tag = tag_without_debt(index);
    debts_[index] = {};
    if (std::exchange(flow.in_debt, false) && !flow.queue.empty()) place_again(index, now);
  }
}

void Sfq::charge_more(const IoRequest& request, Cost cost) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_[index];
  (void)move_ahead(flow, flow.next_amount(std::min(cost, kMaxCost)), ahead(flow, kMaxCost));
  if (ready_.contains(index)) tag_has_changed(index);
}

void Sfq::withdraw(IoRequest& request, TimePoint now) {
  Flow& flow = flows_.of(request);
  const bool was_head = flows_.withdraw(flow, request, now);
  const auto index = std::to_underlying(request.app);
  if (flow.queue.empty()) {
    flow.end_backlog();
    take_out(index);
    if (flow.in_backlog) tell_backlog(flow, index, now);
  } else if (was_head) {
    take_out(index);
    begin_head(flow, index, now);
    place(index, now);
  }
  end_busy_period_if_idle();
}

void Sfq::end_busy_period_if_idle() {
  if (flows_.queued() != 0 || outstanding_ != 0) return;
  virtual_time_ = std::max(virtual_time_, largest_finish_);
  if (virtual_time_ > StartTag::kRebaseAt) rebase();
}

void Sfq::rebase() {
  for (Flow& flow : flows_) flow.rebase(virtual_time_);
  ready_.subtract(virtual_time_);
  largest_finish_ = StartTag::subtract_to_zero(largest_finish_, virtual_time_);
  virtual_time_ = 0;
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
  if (!ready_.empty() && ready_.top() == index) return {.reason = kIsNext};
  if (indebted_.contains(index)) return {.reason = "it got more than its share elsewhere"};
  return {.reason = "flows that had less for their weight go first"};
}

}  // namespace vpfs
