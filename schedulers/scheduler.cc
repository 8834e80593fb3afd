#include "schedulers/scheduler.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/wide.h"

namespace vpfs {

std::uint64_t Scheduler::Part::of_whole(std::uint64_t whole) const {
  if (whole == 0) return 0;
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(Wide{whole} * share / of), 1);
}

Scheduler::Scheduler(const MakePolicy& make_policy, Depth depth,
                     std::optional<AutoDepth> auto_depth, TrafficClasses classes,
                     RateLimits* shared, TotalServices* totals)
    : gate_(depth),
      own_limits_(shared == nullptr ? std::make_unique<RateLimits>() : nullptr),
      limits_(shared == nullptr ? *own_limits_ : *shared),
      user_(limits_.join()),
      settings_(std::move(classes)) {
  VPFS_ASSERT(settings_.classes.size() <= TrafficClasses::kMost);
  if (auto_depth) {
    controller_.emplace(
        DepthController::Settings{.least = auto_depth->least, .most = auto_depth->most});
    gate_.set_requests(controller_->depth());
    tells_more_ = true;
  }
  if (settings_.mode == TrafficClasses::Mode::none || settings_.classes.size() < 2) {
    add_class(make_policy(limits_, {.user = user_, .total = totals ? &totals->front() : nullptr}),
              1);
    return;
  }
  limits_.share();
  tells_more_ = true;
  std::uint32_t sum = 0;
  for (const TrafficClasses::Class& each : settings_.classes) sum += each.share;
  const bool strict = settings_.mode == TrafficClasses::Mode::strict;
  for (const TrafficClasses::Class& each : settings_.classes) {
    Part part = {.user = user_};
    if (!strict) part = {.share = each.share, .of = sum, .user = user_};
    if (totals != nullptr) part.total = &(*totals)[classes_.size()];
    add_class(make_policy(limits_, part), each.share);
  }
}

void Scheduler::add_class(std::unique_ptr<Policy> policy, std::uint32_t share) {
  VPFS_ASSERT(policy != nullptr);
  HoldClock& holds = policy->holds();
  CrowdClock* const crowds = policy->crowds();
  classes_.push_back(
      {.policy = std::move(policy), .holds = &holds, .crowds = crowds, .start = StartTag(share)});
  last_index_ = static_cast<std::uint8_t>(classes_.size() - 1);
}

void Scheduler::enqueue(IoRequest& request, TimePoint now) {
  request.passed_limit = false;
  if (has_classes()) return enqueue_in_class(request, now);
  request.traffic_class = 0;
  classes_.front().policy->enqueue(request, now);
}

void Scheduler::enqueue_in_class(IoRequest& request, TimePoint now) {
  // A request may be older than the present classes.
  request.traffic_class = std::min(request.traffic_class, last_index_);
  Class& to = class_of(request);
  last_class_[std::to_underlying(request.app)] = request.traffic_class;
  if (to.policy->queued() == 0) to.served = now;
  to.policy->enqueue(request, now);
}

Scheduler::Decision Scheduler::next(TimePoint now) {
  kept_by_cost_ = false;
  if (!gate_.has_room()) return send_nothing(kNever, now);
  const Choice choice = choose(now);
  if (choice.head.request == nullptr) return none_may_go(choice.head.until, now);
  IoRequest& request = *choice.head.request;
  if (!gate_.cost_fits(request.cost)) {
    kept_by_cost_ = true;
    return send_nothing(kNever, now);
  }
  gate_.start(request.cost);
  if (choice.from->crowds != nullptr) choice.from->crowds->sent(request.cost);
  if (tells_more_) {
    send_and_tell(*choice.from, request, now);
  } else {
    choice.from->holds->sent(true, now);
    choice.from->policy->dispatch(request, now);
  }
  request.sent = now;
  return {.request = &request};
}

void Scheduler::send_and_tell(Class& from, IoRequest& request, TimePoint now) {
  for (Class& each : classes_) each.holds->sent(&each == &from, now);
  from.policy->dispatch(request, now);
  if (has_classes()) charge(from, request.cost, now);
  if (controller_) controller_->dispatched(gate_.requests(), now);
}

Scheduler::Decision Scheduler::none_may_go(TimePoint until, TimePoint now) {
  if (controller_) controller_->starved(now);
  return send_nothing(until, now);
}

Scheduler::Decision Scheduler::send_nothing(TimePoint until, TimePoint now) {
  const bool holds_back = depth_reached();
  for (Class& each : classes_) {
    if (each.crowds != nullptr) each.crowds->set_holding(holds_back, now);
  }
  return {.until = until};
}

Scheduler::Choice Scheduler::choose(TimePoint now) {
  if (has_classes()) return choose_among_classes(now);
  Class& only = classes_.front();
  const Choice choice = {.head = only.policy->head(now), .from = &only};
  if (choice.head.kept_back != nullptr) note_kept_back(*choice.head.kept_back, now);
  return choice;
}

void Scheduler::note_kept_back(const IoRequest& request, TimePoint now) {
  const Class& only = classes_.front();
  gate_.admits(request.cost) ? only.holds->kept_back(now) : only.policy->has_no_room(now);
}

Scheduler::Choice Scheduler::choose_among_classes(TimePoint now) {
  Choice best = {.from = &classes_.front()};
  for (Class& each : classes_) {
    const Policy::Head head = each.policy->head(now);
    best.head.until = std::min(best.head.until, head.until);
    if (head.request == nullptr) continue;
    if (best.head.request == nullptr || goes_before(each, *best.from, now)) {
      best.from = &each;
      best.head.request = head.request;
    }
  }
  return best;
}

// Whether it is the turn of `one` and not of a class that precedes it in the configuration.
bool Scheduler::goes_before(const Class& one, const Class& earlier, TimePoint now) const {
  if (settings_.mode == TrafficClasses::Mode::apportion) {
    return std::max(one.start.tag, class_time_) < std::max(earlier.start.tag, class_time_);
  }
  return starves(one, now) && (!starves(earlier, now) || one.served < earlier.served);
}

bool Scheduler::starves(const Class& one, TimePoint now) const {
  return settings_.max_starvation && now - one.served >= *settings_.max_starvation;
}

// S = max(v, F before), v := S, F = S + cost / share.
void Scheduler::charge(Class& one, Cost cost, TimePoint now) {
  one.served = now;
  StartTag& start = one.start;
  class_time_ = std::max(start.tag, class_time_);
  const StartTag::Tag amount = start.next_amount(cost);
  start.tag = class_time_ + amount;
  one.policy->queued() == 0 ? start.end_backlog() : start.use_credit(amount);
  if (class_time_ <= StartTag::kRebaseAt) return;
  for (Class& each : classes_) each.start.rebase(class_time_);
  class_time_ = 0;
}

// Adds to what the class owes. It had no turn, so neither v nor its wait changes.
void Scheduler::charge_beside(Class& one, Cost cost) {
  StartTag& start = one.start;
  if (one.policy->queued() == 0) start.end_backlog();
  const StartTag::Tag begin = std::max(start.tag, class_time_);
  const StartTag::Tag latest = class_time_ + start.amount_of(kMaxCost);
  const StartTag::Tag tag = std::min(begin + start.next_amount(std::min(cost, kMaxCost)), latest);
  start.tag = std::max(start.tag, tag);
}

void Scheduler::complete(const IoRequest& request, Cost cost, TimePoint now) {
  gate_.finish(request.cost);
  if (tells_more_) return complete_and_tell(request, cost, now);
  classes_.front().policy->complete(request, cost, now);
}

void Scheduler::complete_and_tell(const IoRequest& request, Cost cost, TimePoint now) {
  Class& of = class_of(request);
  of.policy->complete(request, cost, now);
  if (has_classes() && cost < request.cost) {
    of.start.give_back(of.start.amount_of(request.cost - cost), class_time_,
                       of.policy->queued() > 0);
  }
  if (!controller_) return;
  controller_->completed(request.sent, gate_.requests(), now);
  gate_.set_requests(controller_->depth());
}

void Scheduler::charge_more(const IoRequest& request, Excess more, TimePoint now) {
  limits_.take_more(request, more.size, now);
  Class& of = class_of(request);
  of.policy->charge_more(request, more.cost, now);
  if (has_classes()) charge_beside(of, more.cost);
}

void Scheduler::withdraw(IoRequest& request, TimePoint now) {
  Class& of = class_of(request);
  of.policy->withdraw(request, now);
  if (of.policy->queued() == 0) of.start.end_backlog();
}

void Scheduler::let_pass(IoRequest& request, TimePoint now) {
  Class& of = class_of(request);
  of.policy->let_pass(request, now);
  if (has_classes()) charge_beside(of, request.cost);
}

Result<void> Scheduler::set_share(AppId app, const Share& share, TimePoint now) {
  limits_.set(app, share, now);
  const std::size_t flows = std::size_t{std::to_underlying(app)} + 1;
  if (has_classes() && flows > last_class_.size()) last_class_.resize(flows);
  Result<void> result;
  for (Class& each : classes_) {
    Result<void> one = each.policy->set_share(app, share, now);
    if (!one && result) result = std::move(one);
    each.holds->start(std::to_underlying(app), now);
  }
  return result;
}

bool Scheduler::set_limits(AppId app, const Limits& limits, TimePoint now) {
  bool done = true;
  for (Class& each : classes_) done = each.policy->set_limits(app, limits, now) && done;
  return done;
}

void Scheduler::set_hold(Duration hold, TimePoint now) {
  limits_.set_hold(hold);
  for (std::uint32_t flow = 0; flow < limits_.size(); ++flow) {
    if (limits_.is_allocated(AppId{flow})) {
      (void)set_limits(AppId{flow}, limits_.allocated(AppId{flow}), now);
    }
  }
}

void Scheduler::remove(AppId app, TimePoint now) {
  limits_.set(app, {}, now);
  limits_.forget(app);
  for (Class& each : classes_) {
    each.policy->remove(app, now);
    each.holds->forget(std::to_underlying(app));
  }
  if (has_classes() && std::to_underlying(app) < last_class_.size()) {
    last_class_[std::to_underlying(app)] = 0;
  }
}

void Scheduler::served_elsewhere(AppId app, Cost cost, Duration delay, TimePoint now) {
  const auto waits_in = [&](const Class& each) { return each.policy->flow(app).queued > 0; };
  auto parts = static_cast<Cost>(std::ranges::count_if(classes_, waits_in));
  if (parts == 0) {
    const std::size_t last = has_classes() ? last_class_[std::to_underlying(app)] : 0;
    return classes_[last].policy->served_elsewhere(app, cost, delay, now);
  }
  for (Class& each : classes_) {
    if (!waits_in(each)) continue;
    const Cost part = cost / parts--;
    cost -= part;
    each.policy->served_elsewhere(app, part, delay, now);
  }
}

IoRequest* Scheduler::any_queued() const {
  for (const Class& each : classes_) {
    if (IoRequest* const request = each.policy->any_queued()) return request;
  }
  return nullptr;
}

std::size_t Scheduler::queued() const {
  std::size_t sum = 0;
  for (const Class& each : classes_) sum += each.policy->queued();
  return sum;
}

FlowState Scheduler::flow(AppId app) const {
  FlowState all;
  for (const Class& each : classes_) {
    const FlowState one = each.policy->flow(app);
    all.queued += one.queued;
    all.outstanding += one.outstanding;
    if (one.oldest == nullptr) continue;
    if (all.oldest == nullptr || one.oldest->arrival < all.oldest->arrival) all.oldest = one.oldest;
  }
  return all;
}

WaitReason Scheduler::why_waiting(AppId app, TimePoint now) {
  const IoRequest* const oldest = flow(app).oldest;
  if (oldest == nullptr) return {};
  const Class& of = class_of(*oldest);
  // Policies are not asked while the depth is full: asking would tell them that there is room.
  const Choice choice = gate_.has_room() ? choose(now) : Choice{};
  const WaitReason why = of.policy->why_waiting(app, now);
  if (why.eligible) return why;
  if (!gate_.has_room()) return {.reason = gate_.reason(0)};
  const auto [request, until, kept_back] = choice.head;
  const IoRequest* const next = request != nullptr ? request : kept_back;
  if (next == nullptr) return why;
  const std::string_view full = gate_.reason(next->cost);
  if (!full.empty()) return {.reason = full};
  if (request == nullptr) return why;
  if (&of == choice.from) return why;
  if (settings_.mode == TrafficClasses::Mode::apportion) {
    return {.reason = "traffic classes that had less for their share go first"};
  }
  return {.reason = &of < choice.from ? "a traffic class that has waited for too long goes first"
                                      : "a higher traffic class goes first"};
}

StatusFields Scheduler::report(AppId app, TimePoint now) const {
  StatusFields all = classes_.front().policy->report(app, now);
  for (std::size_t i = 1; i < classes_.size(); ++i) all.join(classes_[i].policy->report(app, now));
  return all;
}

HoldTimes Scheduler::held(AppId app, TimePoint now) const {
  const auto flow = std::to_underlying(app);
  HoldTimes sum = classes_.front().holds->held(flow, now);
  for (const Class& each : std::span(classes_).subspan(1)) sum += each.holds->held(flow, now);
  return sum;
}

Loans Scheduler::loans(AppId app) const {
  Loans sum;
  for (const Class& each : classes_) sum += each.policy->loans(app);
  return sum;
}

std::optional<Crowding> Scheduler::crowding(AppId app, std::uint8_t traffic_class,
                                            TimePoint now) const {
  const std::size_t index = std::min<std::size_t>(traffic_class, classes_.size() - 1);
  const CrowdClock* const crowds = classes_[index].crowds;
  if (crowds == nullptr) return std::nullopt;
  return crowds->crowding(std::to_underlying(app), now);
}

StatusFields Scheduler::server(TimePoint now) const {
  // Apportioned classes each know a part of the server; others all know the whole.
  if (settings_.mode != TrafficClasses::Mode::apportion) return classes_.back().policy->server(now);
  StatusFields all;
  for (const Class& each : classes_) all.join(each.policy->server(now));
  return all;
}

}  // namespace vpfs
