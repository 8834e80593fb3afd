#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/wide.h"

namespace vpfs::allocation {

inline constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

// Weights, amounts and demands that are not unbounded are at most this, and so are the sums of
// weights: products fit into 128 bits.
inline constexpr std::uint64_t kMostAmount = std::uint64_t{1} << 62;

// One that asks for a part. Ties go to the one that comes first.
struct Claim {
  std::uint64_t weight = 1;  // at least 1
  std::uint64_t demand = 0;  // at most kMostAmount, or kUnbounded
};

// Weighted max-min fairness, fill() of PSFA (ALGORITHMS: [PSFA]): no pair gets more than its
// demand, and one that gets less gets at least its weighted share among such pairs.
class MaxMin {
 public:
  // Writes to `got` what each claim gets of `amount`, in whole units. Returns what is left if all
  // demands were met, else zero: then not a unit is. O(n) for each of a few
  // rounds: in each of them the parts of the others grow. REQUIRES:
  // got.size() == claims.size().
  std::uint64_t fill(std::uint64_t amount, std::span<const Claim> claims,
                     std::span<std::uint64_t> got);

 private:
  void share(std::uint64_t amount, std::uint64_t weights, std::span<const Claim> claims,
             std::span<std::uint64_t> got);

  // Kept from one call to the next.
  std::vector<std::uint32_t> unmet_;       // ascending, while demands are met
  std::vector<std::uint64_t> remainders_;  // by claim
};

}  // namespace vpfs::allocation
