#include "schedulers/rate_limits.h"

#include <algorithm>

namespace vpfs {

RateLimits::Limit& RateLimits::make(AppId app) {
  if (index(app) >= limits_.size()) limits_.resize(index(app) + 1);
  return limits_[index(app)];
}

void RateLimits::set_bucket(Limit& limit, std::uint8_t kind, std::uint64_t rate,
                            std::uint64_t depth, TimePoint now) {
  if (rate == 0) {
    limit.kinds &= static_cast<std::uint8_t>(~kind);
    return;
  }
  TokenBucket& bucket = kind == kBytes ? limit.bytes : limit.operations;
  if ((limit.kinds & kind) == 0) bucket = TokenBucket(rate, depth);
  limit.kinds |= kind;
  // A new one is full from now on: what its flow did before is none of its business.
  bucket.change(rate, depth, now);
}

void RateLimits::set(AppId app, const Share& share, TimePoint now) {
  Limit& limit = make(app);
  set_bucket(limit, kBytes, share.rate.count, std::max<std::uint64_t>(share.burst.count, 1), now);
  set_bucket(limit, kOperations, share.operations,
             std::max<std::uint64_t>(share.burst_operations, 1), now);
  limit.realtime = share.realtime;
}

void RateLimits::set_rate(AppId app, std::uint64_t rate, std::uint64_t burst, bool realtime,
                          TimePoint now) {
  Limit& limit = make(app);
  set_bucket(limit, kBytes, std::clamp<std::uint64_t>(rate, 1, Share::kMaxRate),
             std::max<std::uint64_t>(burst, 1), now);
  limit.realtime = realtime;
}

void RateLimits::lift(AppId app) {
  make(app).kinds = 0;
}

TimePoint RateLimits::ready_at(const IoRequest& request) const {
  const Limit& of = limit(request.app);
  TimePoint at = TimePoint::min();
  if ((of.kinds & kBytes) != 0) at = of.bytes.ready_at(amount(request));
  if ((of.kinds & kOperations) != 0) at = std::max(at, of.operations.ready_at(1));
  return at;
}

void RateLimits::take(const IoRequest& request, TimePoint now) {
  Limit& of = limits_[index(request.app)];
  const TimePoint from = of.realtime ? of.backlog_since : now;
  if ((of.kinds & kBytes) != 0) of.bytes.take(amount(request), from);
  if ((of.kinds & kOperations) != 0) of.operations.take(1, from);
}

void RateLimits::take_more(AppId app, Bytes size, TimePoint now) {
  if (index(app) >= limits_.size()) return;
  Limit& of = limits_[index(app)];
  if ((of.kinds & kBytes) != 0) of.bytes.take(size.count, now);
}

void RateLimits::report(AppId app, TimePoint now, FlowReport& report) const {
  if (index(app) >= limits_.size()) return;
  const Limit& of = limit(app);
  if ((of.kinds & kBytes) != 0) report.tokens = of.bytes.level(now);
  if ((of.kinds & kOperations) != 0) report.operation_tokens = of.operations.level(now);
}

}  // namespace vpfs
