#include "schedulers/rate_limits.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/check.h"

namespace vpfs {

RateLimits::User RateLimits::join() {
  if (++users_ > 1) shared_ = true;
  const auto free = static_cast<User>(std::min(std::countr_one(user_set_), kMostUsers - 1));
  user_set_ |= std::uint64_t{1} << free;
  return free;
}

void RateLimits::leave(User user) {
  --users_;
  if (user != kMostUsers - 1 || users_ < kMostUsers) user_set_ &= ~(std::uint64_t{1} << user);
  for (Limit& each : limits_) each.turns.leave(user);
  for (Metadata& each : metadata_) each.turns.leave(user);
}

RateLimits::Limit* RateLimits::find(AppId app, bool make) {
  if (!has_row(app)) {
    if (!make) return nullptr;
    limits_.resize(index(app) + 1);
    rows_ = limits_.size();
  }
  return &limits_[index(app)];
}

void RateLimits::set_bucket(Limit& limit, std::uint8_t kind, std::uint64_t rate,
                            std::uint64_t depth, Change how, TimePoint now) {
  if (shared_) limit.turns.begin_anew();
  if (rate == 0) {
    limit.kinds &= static_cast<std::uint8_t>(~kind);
    return;
  }
  TokenBucket& bucket = kind == kBytes ? limit.bytes : limit.operations;
  if ((limit.kinds & kind) == 0) bucket = TokenBucket(rate, depth);
  limit.kinds |= kind;
  // A new bucket is full from now on, whatever its flow did before.
  how == Change::asked ? bucket.fit(rate, depth, now) : bucket.change(rate, depth, now);
}

void RateLimits::set(AppId app, const Share& share, TimePoint now) {
  Limit* const limit = find(app, share.rate.count > 0 || share.operations > 0);
  if (limit == nullptr) return;
  const auto change = [&](std::uint8_t kind, std::uint64_t rate, std::uint64_t depth) {
    const TokenBucket& bucket = kind == kBytes ? limit->bytes : limit->operations;
    const bool is_set = (limit->kinds & kind) != 0;
    const bool same = is_set ? bucket.rate() == rate && bucket.depth() == depth : rate == 0;
    if (!same) set_bucket(*limit, kind, rate, depth, Change::asked, now);
  };
  change(kBytes, share.rate.count, std::max<std::uint64_t>(share.burst.count, 1));
  change(kOperations, share.operations, std::max<std::uint64_t>(share.burst_operations, 1));
  limit->realtime = share.realtime;
  if (is_allocated(app)) fit_allocated(app, now);
}

void RateLimits::set_rate(AppId app, std::uint64_t rate, std::uint64_t burst, bool realtime,
                          TimePoint now) {
  Limit& limit = *find(app, true);
  set_bucket(limit, kBytes, std::clamp<std::uint64_t>(rate, 1, Share::kMaxRate),
             std::max<std::uint64_t>(burst, 1), Change::calculated, now);
  limit.realtime = realtime;
}

void RateLimits::lift(AppId app) {
  if (Limit* const limit = find(app, false)) limit->kinds &= kAllocated;
}

void RateLimits::allocate(AppId app, const Limits& limits, TimePoint now) {
  if (!limits.any() && !is_allocated(app)) return;
  Limit& limit = *find(app, true);
  if (index(app) >= allocated_.size()) allocated_.resize(index(app) + 1);
  allocated_[index(app)].limits = limits;
  fit_allocated(app, now);
  limit.kinds &= static_cast<std::uint8_t>(~kAllocated);
  if (limits.any()) limit.kinds |= kAllocated;
}

// Brings the buckets of a coordinator's limits into line with these and with the share's.
void RateLimits::fit_allocated(AppId app, TimePoint now) {
  Allocated& of = allocated_[index(app)];
  Limit& limit = limits_[index(app)];
  const auto fit = [&](AllocatedLimit& to, std::optional<std::uint64_t> rate, std::uint8_t kind,
                       std::uint64_t least) {
    if (!rate) return to.lift();
    const TokenBucket& share = kind == kBytes ? limit.bytes : limit.operations;
    if ((limit.kinds & kind) == 0) {
      return to.set(*rate, AllocatedLimit::burst_of(*rate, least), nullptr, now);
    }
    return to.set(std::min(*rate, share.rate()), share.depth(), &share, now);
  };
  const auto count = [](BytesPerSecond rate) { return rate.count; };
  const bool bytes =
      fit(of.bytes, of.limits.bytes.transform(count), kBytes, AllocatedLimit::kLeastBytes);
  const bool operations =
      fit(of.operations, of.limits.operations, kOperations, AllocatedLimit::kLeastOperations);
  if (bytes || operations) limit.turns.forget_times();
  fit_metadata(app, now);
}

void RateLimits::fit_metadata(AppId app, TimePoint now) {
  const std::optional<std::uint64_t>& rate = allocated_[index(app)].limits.metadata_operations;
  if (index(app) >= metadata_.size()) {
    if (!rate) return;
    metadata_.resize(index(app) + 1);
  }
  auto& [limit, turns] = metadata_[index(app)];
  const auto set = [&] {
    const std::uint64_t burst = AllocatedLimit::burst_of(*rate, AllocatedLimit::kLeastOperations);
    return limit.set(*rate, burst, nullptr, now);
  };
  if (rate ? set() : limit.lift()) turns.forget_times();
}

void RateLimits::forget(AppId app) {
  if (index(app) >= allocated_.size()) return;
  allocated_[index(app)] = {};
  if (index(app) < metadata_.size()) metadata_[index(app)] = {};
  Limit& limit = limits_[index(app)];
  limit.kinds &= static_cast<std::uint8_t>(~kAllocated);
  limit.turns.forget_times();
}

Limits RateLimits::allocated(AppId app) const {
  return is_allocated(app) ? allocated_[index(app)].limits : Limits{};
}

void RateLimits::begin_backlog(AppId app, TimePoint now) {
  Limit& of = limits_[index(app)];
  if (of.queues++ == 0) of.backlog_since = now;
}

void RateLimits::end_backlog(AppId app) {
  Limit& of = limits_[index(app)];
  VPFS_ASSERT(of.queues > 0);
  --of.queues;
}

void RateLimits::give_up(AppId app, User user) {
  if (users_ < 2 || !limited(app)) return;
  limits_[index(app)].turns.give_up(user);
  if (index(app) < metadata_.size()) metadata_[index(app)].turns.give_up(user);
}

TimePoint RateLimits::ready_with_operations_at(const Limit& of, const IoRequest& request) const {
  const TimePoint at = of.operations.ready_at(1);
  return (of.kinds & kBytes) != 0 ? std::max(at, of.bytes.ready_at(amount(request))) : at;
}

TimePoint RateLimits::share_in_turn(const IoRequest& head, User user, TimePoint now) {
  return in_turn(head.app, user, {.share = ready_at(head)}, now);
}

TimePoint RateLimits::in_turn(AppId app, User user, const Turns::Ready& ready, TimePoint now) {
  if (!limited(app)) return std::max(ready.share, ready.allocated);
  return limits_[index(app)].turns.allowed_at(user, ready, now);
}

TimePoint RateLimits::most_ready_at(const IoRequest& request) const {
  const Allocated& of = allocated_[index(request.app)];
  return std::max(of.bytes.ready_at(amount(request)), of.operations.ready_at(1));
}

TimePoint RateLimits::allocated_ready_at(const IoRequest& request) const {
  const TimePoint most = most_ready_at(request);
  if (!takes_metadata(request)) return most;
  return std::max(most, metadata_[index(request.app)].limit.ready_at(1));
}

TimePoint RateLimits::allowed_by_both_at(const IoRequest& head, TimePoint oldest, User user,
                                         TimePoint now) {
  Turns::Ready ready = {.share = ready_at(head), .passes = oldest + pass_after_};
  ready.allocated = std::min(most_ready_at(head), ready.passes);
  const bool has_turns = users_ > 1 && (ready.passes > now || limited_by_share(head.app));
  const TimePoint at =
      has_turns ? in_turn(head.app, user, ready, now) : std::max(ready.share, ready.allocated);
  return std::max(at, metadata_allowed_at(head, ready.passes, user, now));
}

TimePoint RateLimits::metadata_allowed_at(const IoRequest& head, TimePoint passes, User user,
                                          TimePoint now) {
  if (!takes_metadata(head)) return TimePoint::min();
  auto& [limit, turns] = metadata_[index(head.app)];
  const TimePoint ready = std::min(limit.ready_at(1), passes);
  if (users_ < 2 || passes <= now || !limit.is_set()) return ready;
  return turns.allowed_at(user, {.allocated = ready, .passes = passes}, now);
}

WaitReason RateLimits::why_waiting(const IoRequest& head, TimePoint oldest,
                                   std::string_view by_share, TimePoint now) const {
  const TimePoint share = ready_at(head);
  TimePoint allocated = TimePoint::min();
  if (is_allocated(head.app)) {
    allocated = std::min(allocated_ready_at(head), oldest + pass_after_);
  }
  if (std::max(share, allocated) <= now) return {};
  if (allocated > share) return {.reason = kCoordinatorsLimit, .eligible = allocated};
  return {.reason = by_share, .eligible = share};
}

void RateLimits::take_allocated(IoRequest& request, TimePoint from, TimePoint now) {
  Allocated& of = allocated_[index(request.app)];
  AllocatedLimit* const metadata =
      takes_metadata(request) ? &metadata_[index(request.app)].limit : nullptr;
  request.passed_limit = allocated_ready_at(request) > now;
  if (request.passed_limit) {
    of.bytes.take_present(amount(request), now);
    of.operations.take_present(1, now);
    if (metadata != nullptr) metadata->take_present(1, now);
  } else {
    of.bytes.take(amount(request), from);
    of.operations.take(1, from);
    if (metadata != nullptr) metadata->take(1, from);
  }
}

void RateLimits::take_of_each(Limit& of, IoRequest& request, User user, TimePoint now) {
  const TimePoint from = taken_from(of, now);
  if ((of.kinds & kBytes) != 0) of.bytes.take(amount(request), from);
  if ((of.kinds & kOperations) != 0) of.operations.take(1, from);
  if ((of.kinds & kAllocated) != 0) take_allocated(request, from, now);
  if (users_ < 2) return;
  of.turns.take(user);
  if (takes_metadata(request)) metadata_[index(request.app)].turns.take(user);
}

void RateLimits::take_more(const IoRequest& request, Bytes size, TimePoint now) {
  if (!limited(request.app)) return;
  Limit& of = limits_[index(request.app)];
  const TimePoint from = taken_from(of, now);
  if ((of.kinds & kBytes) != 0) of.bytes.take(size.count, from);
  if ((of.kinds & kAllocated) == 0) return;
  AllocatedLimit& bytes = allocated_[index(request.app)].bytes;
  request.passed_limit ? bytes.take_present(size.count, now) : bytes.take(size.count, from);
}

StatusFields RateLimits::report(AppId app, TimePoint now) const {
  StatusFields fields;
  if (!has_row(app)) return fields;
  const Limit& of = limit(app);
  if ((of.kinds & kBytes) != 0) fields.add({.name = "tokens", .value = of.bytes.level(now)});
  if ((of.kinds & kOperations) != 0) {
    fields.add({.name = "operation_tokens", .value = of.operations.level(now)});
  }
  return fields;
}

}  // namespace vpfs
