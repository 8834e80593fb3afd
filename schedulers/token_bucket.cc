#include "schedulers/token_bucket.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/wide.h"

namespace vpfs {

TokenBucket::TokenBucket(std::uint64_t rate, std::uint64_t depth) : rate_(rate), depth_(depth) {
  VPFS_ASSERT(rate >= 1 && rate <= std::uint64_t{1} << 50 && depth >= 1);
}

TokenBucket::Span TokenBucket::time_of(Wide parts) const {
  // Divisions of 128 bits are slow, and coordinators change the limits of thousands of flows.
  if (parts < rate()) return {.nanoseconds = 0, .remainder = static_cast<std::uint64_t>(parts)};
  const Wide quotient = parts / rate();
  if (quotient >= kLongest) return {.nanoseconds = kLongest, .remainder = 0};
  return {.nanoseconds = static_cast<std::int64_t>(quotient),
          .remainder = static_cast<std::uint64_t>(parts - quotient * rate())};
}

TimePoint TokenBucket::many_ready_at(std::uint64_t missing) const {
  const Span rest = time_of(Wide{missing} * kNanosecondsPerSecond + before_full());
  return TimePoint(Duration(full_up() - rest.nanoseconds));
}

void TokenBucket::take_many(std::uint64_t tokens, TimePoint from) {
  add(time_of(Wide{tokens} * kNanosecondsPerSecond + remainder_), from);
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
