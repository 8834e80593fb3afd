#include "control/allocation/max_min.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace vpfs::allocation {

std::uint64_t MaxMin::fill(std::uint64_t amount, std::span<const Claim> claims,
                           std::span<std::uint64_t> got) {
  VPFS_ASSERT(got.size() == claims.size() && amount <= kMostAmount);
  order_.resize(claims.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
    const Claim& one = claims[a];
    const Claim& other = claims[b];
    const bool both = one.demand != kUnbounded && other.demand != kUnbounded;
    if (both) {
      const Wide left = Wide{one.demand} * other.weight;
      const Wide right = Wide{other.demand} * one.weight;
      return left != right ? left < right : a < b;
    }
    if (one.demand != other.demand) return other.demand == kUnbounded;
    return a < b;
  });
  std::uint64_t weights = 0;
  for (const Claim& each : claims) weights += each.weight;
  VPFS_ASSERT(weights <= kMostAmount);

  for (std::size_t i = 0; i < order_.size(); ++i) {
    const Claim& claim = claims[order_[i]];
    const bool fits =
        claim.demand != kUnbounded && Wide{claim.demand} * weights <= Wide{amount} * claim.weight;
    if (!fits) {
      share(amount, weights, claims, std::span(order_).subspan(i), got);
      return 0;
    }
    got[order_[i]] = claim.demand;
    amount -= claim.demand;
    weights -= claim.weight;
  }
  return amount;
}

// Divides all of the amount by weight.
void MaxMin::share(std::uint64_t amount, std::uint64_t weights, std::span<const Claim> claims,
                   std::span<const std::uint32_t> unmet, std::span<std::uint64_t> got) {
  remainders_.resize(std::max(remainders_.size(), claims.size()));
  std::uint64_t missing = amount;
  for (const std::uint32_t each : unmet) {
    const Wide part = Wide{amount} * claims[each].weight;
    got[each] = static_cast<std::uint64_t>(part / weights);
    remainders_[each] = static_cast<std::uint64_t>(part % weights);
    missing -= got[each];
  }
  if (missing == 0) return;
  // Fewer units are missing than there are claims.
  largest_.assign(unmet.begin(), unmet.end());
  const auto larger = [&](std::uint32_t a, std::uint32_t b) {
    return remainders_[a] != remainders_[b] ? remainders_[a] > remainders_[b] : a < b;
  };
  std::ranges::nth_element(largest_, largest_.begin() + static_cast<std::ptrdiff_t>(missing),
                           larger);
  for (std::size_t i = 0; i < missing; ++i) ++got[largest_[i]];
}

}  // namespace vpfs::allocation
