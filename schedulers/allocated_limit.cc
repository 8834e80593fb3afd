#include "schedulers/allocated_limit.h"

#include <algorithm>
#include <utility>

#include "schedulers/share.h"

namespace vpfs {

std::uint64_t AllocatedLimit::burst_of(std::uint64_t rate, std::uint64_t least) {
  constexpr auto kInASecond = static_cast<std::uint64_t>(std::chrono::seconds(1) / kBurstTime);
  return std::max(std::min(rate, Share::kMaxRate) / kInASecond, least);
}

bool AllocatedLimit::set(std::uint64_t rate, std::uint64_t burst, const TokenBucket* first,
                         TimePoint now) {
  rate = std::min(rate, Share::kMaxRate);
  const bool was_set = std::exchange(is_set_, true);
  if (std::exchange(is_new_, false)) {
    bucket_ = first != nullptr ? *first : TokenBucket(std::max<std::uint64_t>(rate, 1), burst);
    rate_ = first != nullptr ? first->rate() : 0;
    stopped_ = now;
  }
  if (rate == rate_ && burst == bucket_.depth()) return !was_set;
  // A bucket does not fill while it is stopped. At a rate of 1 it could not say how empty it is.
  const std::uint64_t fill = rate > 0 ? rate : bucket_.rate();
  bucket_.refit(fill, burst, filled_until(now), now);
  if (rate == 0) stopped_ = now;
  rate_ = rate;
  return true;
}

bool AllocatedLimit::lift() {
  return std::exchange(is_set_, false);
}

}  // namespace vpfs
