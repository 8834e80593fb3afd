#include "schedulers/allocated_limit.h"

#include <algorithm>
#include <utility>

#include "schedulers/share.h"

namespace vpfs {

std::uint64_t AllocatedLimit::burst_of(std::uint64_t rate, std::uint64_t least) {
  constexpr auto kInASecond = static_cast<std::uint64_t>(std::chrono::seconds(1) / kBurstTime);
  return std::max(std::min(rate, Share::kMaxRate) / kInASecond, least);
}

bool AllocatedLimit::set(std::uint64_t rate, std::uint64_t burst, TimePoint now) {
  rate = std::min(rate, Share::kMaxRate);
  if (is_set_ && rate == rate_ && burst == bucket_.depth()) return false;
  const std::uint64_t fill = std::max<std::uint64_t>(rate, 1);
  const bool is_new = std::exchange(is_new_, false);
  if (is_new) bucket_ = TokenBucket(fill, burst);
  const TimePoint filled = is_new ? now : filled_until(now);
  bucket_.refit(fill, burst, filled, now);
  if (rate == 0) stopped_ = now;
  rate_ = rate;
  is_set_ = true;
  return true;
}

bool AllocatedLimit::lift() {
  return std::exchange(is_set_, false);
}

}  // namespace vpfs
