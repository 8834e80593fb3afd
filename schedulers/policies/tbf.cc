#include "schedulers/policies/tbf.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "schedulers/time_tag.h"

namespace vpfs {
namespace {

// The order of ready classes as one number. One bit says "without a limit"; such classes go by
// arrival. The others have six bits of rank and the deadline in units of 1024 ns, enough for 4,500
// years. With slices the place is between the deadline's slice and its rest, which loses six
// bits.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 63;
constexpr int kRankBits = 6;
constexpr int kRankShift = 63 - kRankBits;
static_assert(Share::kMaxRank < 1 << kRankBits);

int bits_of_slice(Duration slice) {
  if (slice == Duration::zero()) return 0;
  VPFS_ASSERT(slice >= Tbf::kShortestSlice);
  const auto bits = static_cast<int>(std::bit_width(time_tag(TimePoint{} + slice) / 1024)) - 1;
  VPFS_ASSERT(bits >= kRankBits);
  return bits;
}

std::unique_ptr<Policy> make_tbf(const SchedulerSettings&, RateLimits& limits,
                                 Scheduler::Part part) {
  return std::make_unique<Tbf>(limits, Duration::zero(), part.user);
}

}  // namespace

constinit const PolicyKind Tbf::kKind = {.name = "tbf",
                                         .share_fields = {ShareField::rate, ShareField::operations,
                                                          ShareField::realtime, ShareField::rank},
                                         .caps = true,
                                         .make = make_tbf};

Tbf::Tbf(RateLimits& limits, Duration slice, RateLimits::User user)
    : limits_(limits),
      user_(user),
      slice_bits_(bits_of_slice(slice)),
      // Late requests matter to coordinators' limits, which a policy with slices has not.
      flows_(slice_bits_ == 0) {}

std::uint64_t Tbf::due_tag(const Flow& flow, TimePoint deadline) const {
  const std::uint64_t time = time_tag(deadline) / 1024;
  const std::uint64_t rank = std::uint64_t{flow.rank} << kRankShift;
  if (slice_bits_ == 0) return rank | time;
  const std::uint64_t within = time & ((std::uint64_t{1} << slice_bits_) - 1);
  return rank | (time - within) | std::uint64_t{flow.place} << (slice_bits_ - kRankBits) |
         within >> kRankBits;
}

Result<void> Tbf::set_share(AppId app, const Share& share, TimePoint now) {
  const auto index = std::to_underlying(app);
  if (flows_.grow(app)) {
    ready_.grow(flows_.size());
    waiting_.grow(flows_.size());
  }
  flows_[index].rank = std::min(share.rank.value_or(0), Share::kMaxRank);
  limits_changed(app, now);
  return {};
}

bool Tbf::set_limits(AppId app, const Limits& limits, TimePoint now) {
  limits_.allocate(app, limits, now);
  limits_changed(app, now);
  return true;
}

void Tbf::set_place(AppId app, std::uint8_t place, TimePoint now) {
  Flow& flow = flows_[std::to_underlying(app)];
  place = std::min(place, Share::kMaxRank);
  if (std::exchange(flow.place, place) != place) limits_changed(app, now);
}

void Tbf::limits_changed(AppId app, TimePoint now) {
  const auto index = std::to_underlying(app);
  tell_backlog(index, now);
  if (!flows_[index].queue.empty()) place(index, now);
}

void Tbf::tell_backlog(std::uint32_t index, TimePoint now) {
  Flow& flow = flows_[index];
  const bool has_one = !flow.queue.empty() && limits_.limited(AppId{index});
  if (std::exchange(flow.in_backlog, has_one) == has_one) return;
  has_one ? limits_.begin_backlog(AppId{index}, now) : limits_.end_backlog(AppId{index});
}

// REQUIRES: the flow has a head. Puts the flow where its head belongs now.
void Tbf::place(std::uint32_t index, TimePoint now) {
  Flow& flow = flows_[index];
  const IoRequest& request = *flow.queue.front();
  FlowTournament::Key key = {.tag = kNoLimit | request.order, .order = request.order};
  if (limits_.limited(request.app)) {
    // Tokens that came long before the request give it no precedence over others.
    const TimePoint allowed = std::max(allowed_at(index, now), request.arrival);
    if (allowed > now) {
      flows_.holds().wait_for_limit(index, allowed, now);
      key.tag = time_tag(allowed);
      return put_into_waiting(flow, index, key);
    }
    if (!limits_.is_allocated(request.app)) {
      key.tag = due_tag(flow, allowed);
    } else if (limits_.limited_by_share(request.app)) {
      // As if it were not allocated.
      key.tag = due_tag(flow, std::max(limits_.ready_at(request), request.arrival));
    }
  }
  put_into_ready(flow, index, key, now);
}

void Tbf::put_into_ready(Flow& flow, std::uint32_t index, FlowTournament::Key key, TimePoint now) {
  flows_.holds().wait_for_turn(index, now);
  if (std::exchange(flow.is_waiting, false)) waiting_.take_out(index);
  flow.is_ready = true;
  ready_.put(index, key);
}

void Tbf::put_into_waiting(Flow& flow, std::uint32_t index, FlowTournament::Key key) {
  if (std::exchange(flow.is_ready, false)) ready_.take_out(index);
  flow.is_waiting = true;
  waiting_.put(index, key);
}

void Tbf::take_out(Flow& flow, std::uint32_t index) {
  if (std::exchange(flow.is_ready, false)) ready_.take_out(index);
  if (std::exchange(flow.is_waiting, false)) waiting_.take_out(index);
}

void Tbf::enqueue(IoRequest& request, TimePoint now) {
  Flow& flow = flows_.of(request);
  const Joined joined = flows_.push_back(flow, request);
  // A late request of an allocated flow lets the head pass earlier.
  const bool matters = joined == Joined::late && limits_.is_allocated(request.app);
  if (joined != Joined::as_head && !matters) return;
  tell_backlog(std::to_underlying(request.app), now);
  place(std::to_underlying(request.app), now);
}

void Tbf::place_due(TimePoint now) {
  const std::uint32_t index = waiting_.top();
  place(index, now);
  next_due_.after(index, waiting_, flows_, [this](std::uint32_t flow) { prefetch_rows_of(flow); });
}

Policy::Head Tbf::head(TimePoint now) {
  for (;;) {
    while (!waiting_.empty() && time_of(waiting_.top_tag()) <= now) place_due(now);
    if (ready_.empty()) return {.until = waiting_.empty() ? kNever : time_of(waiting_.top_tag())};
    IoRequest& request = *flows_[ready_.top()].queue.front();
    if (!limits_.may_have_changed() || allowed_at(ready_.top(), now) <= now) {
      return {.request = &request};
    }
    place(ready_.top(), now);
  }
}

IoRequest* Tbf::earliest_waiting() const {
  return waiting_.empty() ? nullptr : flows_[waiting_.top()].queue.front();
}

void Tbf::dispatch_without_tokens(IoRequest& request, TimePoint now) {
  leave(request, now);
}

void Tbf::dispatch(IoRequest& request, TimePoint now) {
  limits_.take(request, user_, now);
  leave(request, now);
}

void Tbf::leave(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_[index];
  flows_.dispatch(flow, request, now);
  if (!flow.queue.empty()) {
    place(index, now);
  } else {
    take_out(flow, index);
    if (flow.in_backlog) tell_backlog(index, now);
  }
  // If none is ready, its owner may have sent the one that waits for the shortest time.
  next_sent_.after(index, ready_.empty() ? waiting_ : ready_, flows_,
                   [this](std::uint32_t flow) { prefetch_rows_of(flow); });
}

void Tbf::prefetch_rows_of(std::uint32_t index) const {
  flows_.prefetch(index);
  limits_.prefetch(index);
  ready_.prefetch(index);
  waiting_.prefetch(index);
}

void Tbf::complete(const IoRequest& request, Cost /*cost*/, TimePoint /*now*/) {
  flows_.of(request).account.completed();
}

void Tbf::withdraw(IoRequest& request, TimePoint now) {
  const auto index = std::to_underlying(request.app);
  Flow& flow = flows_.of(request);
  const bool was_head = flows_.withdraw(flow, request, now);
  if (was_head) limits_.give_up(request.app, user_);
  if (flow.queue.empty()) {
    take_out(flow, index);
    if (flow.in_backlog) tell_backlog(index, now);
  } else if (was_head) {
    place(index, now);
  }
}

void Tbf::let_pass(IoRequest& request, TimePoint now) {
  limits_.take(request, user_, now);
  withdraw(request, now);
  limits_changed(request.app, now);
}

WaitReason Tbf::why_waiting(AppId app, TimePoint now) const {
  const auto index = std::to_underlying(app);
  if (limits_.limited(app)) {
    const WaitReason why =
        limits_.why_waiting(*flows_[index].queue.front(), flows_.oldest_arrival(index),
                            "tokens of its rate limit", now);
    if (why.eligible) return why;
  }
  if (limits_.limited_by_share(app)) {
    if (!ready_.empty() && ready_.top() == index) return {.reason = kIsNext};
    return {.reason = "classes of a lower rank or with an earlier deadline go first"};
  }
  if (!ready_.empty() && ready_.top() == index) return {.reason = kIsNext};
  return {.reason = "classes whose tokens are due, and earlier requests, go first"};
}

}  // namespace vpfs
