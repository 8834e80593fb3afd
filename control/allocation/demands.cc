#include "control/allocation/demands.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::allocation {
namespace {

// Rounded up.
std::uint64_t each_second(std::uint64_t arrived, const Divider& period) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  if (arrived < std::uint64_t{1} << 34) {
    const Divider::Result exact = period.divide(arrived * kSecond);
    return exact.quotient + (exact.remainder > 0 ? 1 : 0);
  }
  const WideAmount nanoseconds = period.divisor();
  return bounded((WideAmount{arrived} * kSecond + nanoseconds - 1) / nanoseconds);
}

}  // namespace

void Demands::begin(Duration period) {
  VPFS_ASSERT(period > Duration::zero());
  ++cycle_;
  period_ = Divider(static_cast<std::uint64_t>(period.count()));
  held_ = period / kLimitedPart;
}

std::uint64_t Demands::of(std::uint32_t pair, std::uint64_t arrived, Duration limited) {
  if (pair >= histories_.size()) histories_.resize(std::size_t{pair} + 1);
  History& history = histories_[pair];
  if (history.cycle == 0 || history.cycle + 1 != cycle_) history = {};
  history.cycle = cycle_;
  history.wanted[cycle_ % kCycles] = each_second(arrived, period_);
  history.limited[cycle_ % kCycles] = limited >= held_;
  if (std::ranges::find(history.limited, true) != history.limited.end()) return kUnbounded;
  const std::uint64_t largest = std::ranges::max(history.wanted);
  return bounded(WideAmount{largest} + largest / 4 + (largest % 4 > 0 ? 1 : 0));
}

}  // namespace vpfs::allocation
