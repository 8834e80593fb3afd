#include "schedulers/token_bucket.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/wide.h"

namespace vpfs {
namespace {

constexpr std::uint64_t kLongest = std::uint64_t{1} << 60;
// Below it, tokens x 10^9 plus a remainder fits into 64 bits.
constexpr std::uint64_t kFewTokens = std::uint64_t{1} << 33;

std::int64_t nanoseconds(TimePoint time) {
  return time.time_since_epoch().count();
}

}  // namespace

TokenBucket::TokenBucket(std::uint64_t rate, std::uint64_t depth) : rate_(rate), depth_(depth) {
  VPFS_ASSERT(rate >= 1 && rate <= std::uint64_t{1} << 50 && depth >= 1);
}

TokenBucket::Span TokenBucket::time_for(std::uint64_t tokens, std::uint64_t remainder) const {
  if (tokens < kFewTokens) {
    const Divider::Result exact = rate_.divide(tokens * kNanosecondsPerSecond + remainder);
    if (exact.quotient >= kLongest) return {.nanoseconds = kLongest, .remainder = 0};
    return {.nanoseconds = static_cast<std::int64_t>(exact.quotient), .remainder = exact.remainder};
  }
  return time_of(Wide{tokens} * kNanosecondsPerSecond + remainder);
}

TokenBucket::Span TokenBucket::time_of(Wide parts) const {
  // Divisions of 128 bits are slow, and coordinators change the limits of thousands of flows.
  if (parts < rate()) return {.nanoseconds = 0, .remainder = static_cast<std::uint64_t>(parts)};
  const Wide quotient = parts / rate();
  if (quotient >= kLongest) return {.nanoseconds = kLongest, .remainder = 0};
  return {.nanoseconds = static_cast<std::int64_t>(quotient),
          .remainder = static_cast<std::uint64_t>(parts - quotient * rate())};
}

TimePoint TokenBucket::ready_at(std::uint64_t tokens) const {
  // The time when it is full, less the time for the rest; rounded so that it is never too early.
  const std::int64_t full_at = full_at_ + (remainder_ > 0 ? 1 : 0);
  if (tokens >= depth_) return TimePoint(Duration(full_at));
  const std::uint64_t before_full = remainder_ > 0 ? rate() - remainder_ : 0;
  const Span rest = time_for(depth_ - tokens, before_full);
  return TimePoint(Duration(full_at - rest.nanoseconds));
}

void TokenBucket::take(std::uint64_t tokens, TimePoint from) {
  if (full_at_ < nanoseconds(from)) {
    full_at_ = nanoseconds(from);
    remainder_ = 0;
  }
  const Span more = time_for(tokens, remainder_);
  full_at_ += more.nanoseconds;
  remainder_ = more.remainder;
  const std::int64_t latest = nanoseconds(from) + std::int64_t{kLongest};
  if (full_at_ < latest) return;
  full_at_ = latest;
  remainder_ = 0;
}

Wide TokenBucket::missing_parts(TimePoint now) const {
  const std::int64_t time = full_at_ - nanoseconds(now);
  return time < 0 ? 0 : Wide(time) * rate() + remainder_;
}

std::int64_t TokenBucket::level(TimePoint now) const {
  // A partial token counts as missing.
  const Wide missing = (missing_parts(now) + kNanosecondsPerSecond - 1) / kNanosecondsPerSecond;
  constexpr SignedWide kLeast = INT64_MIN;
  constexpr SignedWide kMost = INT64_MAX;
  return static_cast<std::int64_t>(
      std::clamp(SignedWide{depth_} - static_cast<SignedWide>(missing), kLeast, kMost));
}

void TokenBucket::set_missing(Wide parts, TimePoint now) {
  const Span rest = time_of(parts);
  full_at_ = nanoseconds(now) + rest.nanoseconds;
  remainder_ = rest.remainder;
}

void TokenBucket::change(std::uint64_t rate, std::uint64_t depth, TimePoint now) {
  const Wide missing = missing_parts(now);
  *this = TokenBucket(rate, depth);
  set_missing(missing, now);
}

void TokenBucket::refit(std::uint64_t rate, std::uint64_t depth, TimePoint from, TimePoint now) {
  const Wide needed = missing_parts(from) + Wide{depth} * kNanosecondsPerSecond;
  const Wide before = Wide{depth_} * kNanosecondsPerSecond;
  *this = TokenBucket(rate, depth);
  set_missing(needed > before ? needed - before : 0, now);
}

void TokenBucket::take_present(std::uint64_t tokens, TimePoint now) {
  const Wide missing = missing_parts(now);
  const Wide all = Wide{depth_} * kNanosecondsPerSecond;
  if (missing < all)
    set_missing(std::min(missing + Wide{tokens} * kNanosecondsPerSecond, all), now);
}

}  // namespace vpfs
