#include "control/allocation/max_min.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::allocation {

std::uint64_t MaxMin::fill(std::uint64_t amount, std::span<const Claim> claims,
                           std::span<std::uint64_t> got) {
  VPFS_ASSERT(got.size() == claims.size() && amount <= kMostAmount);
  unmet_.clear();
  std::uint64_t weights = 0;
  for (std::uint32_t i = 0; i < claims.size(); ++i) {
    unmet_.push_back(i);
    weights += claims[i].weight;
  }
  VPFS_ASSERT(weights <= kMostAmount);

  // The definition goes through the claims in the order of demand / weight. Meeting a demand that
  // fits never lowers what the others may have for their weight. So whoever fits at any time fits
  // in that order too, and no order is needed.
  for (bool met = true; met && !unmet_.empty();) {
    const std::uint64_t amount_before = amount;
    const std::uint64_t weights_before = weights;
    const std::size_t count_before = unmet_.size();
    std::erase_if(unmet_, [&](std::uint32_t i) {
      const Claim& claim = claims[i];
      if (claim.demand == kUnbounded) return false;
      if (Wide{claim.demand} * weights_before > Wide{amount_before} * claim.weight) return false;
      got[i] = claim.demand;
      amount -= claim.demand;
      weights -= claim.weight;
      return true;
    });
    met = unmet_.size() < count_before;
  }
  if (unmet_.empty()) return amount;
  share(amount, weights, claims, got);
  return 0;
}

// Divides all of the amount by weight among the claims that are not met.
void MaxMin::share(std::uint64_t amount, std::uint64_t weights, std::span<const Claim> claims,
                   std::span<std::uint64_t> got) {
  remainders_.resize(std::max(remainders_.size(), claims.size()));
  std::uint64_t missing = amount;
  // Divisions are slow, and neighbours often have the same weight.
  std::uint64_t weight = 0;
  std::uint64_t quotient = 0;
  std::uint64_t remainder = 0;
  bool all_alike = true;
  for (const std::uint32_t each : unmet_) {
    if (claims[each].weight != weight) {
      all_alike = weight == 0;
      weight = claims[each].weight;
      const Wide part = Wide{amount} * weight;
      quotient = static_cast<std::uint64_t>(part / weights);
      remainder = static_cast<std::uint64_t>(part - Wide{quotient} * weights);
    }
    got[each] = quotient;
    remainders_[each] = remainder;
    missing -= quotient;
  }
  if (missing == 0) return;
  // Fewer units are missing than there are claims.
  if (!all_alike) {
    const auto larger = [&](std::uint32_t a, std::uint32_t b) {
      return remainders_[a] != remainders_[b] ? remainders_[a] > remainders_[b] : a < b;
    };
    std::ranges::nth_element(unmet_, unmet_.begin() + static_cast<std::ptrdiff_t>(missing), larger);
  }
  for (std::size_t i = 0; i < missing; ++i) ++got[unmet_[i]];
}

}  // namespace vpfs::allocation
