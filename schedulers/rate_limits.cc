#include "schedulers/rate_limits.h"

#include <algorithm>
#include <bit>

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
  const std::uint64_t bit = std::uint64_t{1} << user;
  if (user != kMostUsers - 1 || users_ < kMostUsers) user_set_ &= ~bit;
  for (Limit& each : limits_) {
    each.served &= ~bit;
    each.refused &= ~bit;
    each.polite &= ~bit;
  }
}

RateLimits::Limit* RateLimits::find(AppId app, bool make) {
  if (index(app) >= limits_.size()) {
    if (!make) return nullptr;
    limits_.resize(index(app) + 1);
  }
  return &limits_[index(app)];
}

void RateLimits::set_bucket(Limit& limit, std::uint8_t kind, std::uint64_t rate,
                            std::uint64_t depth, TimePoint now) {
  // Refusals and their times belong to the limit before.
  limit.served = limit.refused = limit.polite = 0;
  limit.claimed = TimePoint::min();
  if (rate == 0) {
    limit.kinds &= static_cast<std::uint8_t>(~kind);
    return;
  }
  TokenBucket& bucket = kind == kBytes ? limit.bytes : limit.operations;
  if ((limit.kinds & kind) == 0) bucket = TokenBucket(rate, depth);
  limit.kinds |= kind;
  // A new bucket is full from now on, whatever its flow did before.
  bucket.change(rate, depth, now);
}

void RateLimits::set(AppId app, const Share& share, TimePoint now) {
  Limit* const limit = find(app, share.rate.count > 0 || share.operations > 0);
  if (limit == nullptr) return;
  const auto change = [&](std::uint8_t kind, std::uint64_t rate, std::uint64_t depth) {
    const TokenBucket& bucket = kind == kBytes ? limit->bytes : limit->operations;
    const bool is_set = (limit->kinds & kind) != 0;
    const bool same = is_set ? bucket.rate() == rate && bucket.depth() == depth : rate == 0;
    if (!same) set_bucket(*limit, kind, rate, depth, now);
  };
  change(kBytes, share.rate.count, std::max<std::uint64_t>(share.burst.count, 1));
  change(kOperations, share.operations, std::max<std::uint64_t>(share.burst_operations, 1));
  limit->realtime = share.realtime;
}

void RateLimits::set_rate(AppId app, std::uint64_t rate, std::uint64_t burst, bool realtime,
                          TimePoint now) {
  Limit& limit = *find(app, true);
  set_bucket(limit, kBytes, std::clamp<std::uint64_t>(rate, 1, Share::kMaxRate),
             std::max<std::uint64_t>(burst, 1), now);
  limit.realtime = realtime;
}

void RateLimits::lift(AppId app) {
  if (Limit* const limit = find(app, false)) limit->kinds = 0;
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

// Called by a user whose policy has room for the request.
TimePoint RateLimits::in_turn(AppId app, User user, TimePoint ready, TimePoint now) {
  if (!limited(app)) return ready;
  Limit& of = limits_[index(app)];
  const std::uint64_t bit = std::uint64_t{1} << user;
  const bool had_its_turn = (of.served & bit) != 0;
  if (ready > now) {
    of.refused |= bit;
    if (!had_its_turn) of.claimed = std::max(of.claimed, ready);
    return ready;
  }
  const bool others_wait = (of.refused & ~of.served & ~bit) != 0;
  if (!had_its_turn || !others_wait) return ready;
  if (of.claimed > now) return of.claimed;
  const bool gave_way = (of.polite & bit) != 0 && of.polite_at < now;
  if (gave_way) return ready;
  of.polite |= bit;
  of.polite_at = now;
  return now + Duration(1);
}

TimePoint RateLimits::ready_at(const IoRequest& request) const {
  if (!limited(request.app)) return TimePoint::min();
  const Limit& of = limit(request.app);
  TimePoint at = TimePoint::min();
  if ((of.kinds & kBytes) != 0) at = of.bytes.ready_at(amount(request));
  if ((of.kinds & kOperations) != 0) at = std::max(at, of.operations.ready_at(1));
  return at;
}

void RateLimits::take(const IoRequest& request, User user, TimePoint now) {
  if (!limited(request.app)) return;
  Limit& of = limits_[index(request.app)];
  const TimePoint from = taken_from(of, now);
  if ((of.kinds & kBytes) != 0) of.bytes.take(amount(request), from);
  if ((of.kinds & kOperations) != 0) of.operations.take(1, from);
  if (users_ < 2) return;
  const std::uint64_t bit = std::uint64_t{1} << user;
  // A user that goes again found no other that wanted the tokens: a new round begins.
  if ((of.served & bit) != 0) {
    of.served = of.refused = 0;
    of.claimed = TimePoint::min();
  }
  of.served |= bit;
  of.refused &= ~bit;
  of.polite = 0;
}

void RateLimits::take_more(AppId app, Bytes size, TimePoint now) {
  if (!limited(app)) return;
  Limit& of = limits_[index(app)];
  if ((of.kinds & kBytes) != 0) of.bytes.take(size.count, taken_from(of, now));
}

StatusFields RateLimits::report(AppId app, TimePoint now) const {
  StatusFields fields;
  if (index(app) >= limits_.size()) return fields;
  const Limit& of = limit(app);
  if ((of.kinds & kBytes) != 0) fields.add({.name = "tokens", .value = of.bytes.level(now)});
  if ((of.kinds & kOperations) != 0) {
    fields.add({.name = "operation_tokens", .value = of.operations.level(now)});
  }
  return fields;
}

}  // namespace vpfs
