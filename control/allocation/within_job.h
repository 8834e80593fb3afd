#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "control/allocation/demands.h"
#include "control/allocation/max_min.h"
#include "control/allocation/pair.h"

namespace vpfs::allocation {

// All floors together are at most this part of what is divided.
inline constexpr std::uint64_t kFloorPart = 16;

// What a pair of a job wants.
struct Want {
  std::uint64_t demand = 0;  // as Demands has it
  std::uint32_t stages = 1;  // as Pair has it; each has a floor, and a part
};

// Divides what a job has among its stages: by demand, and what all leave in equal parts, steps 3
// and 4 of [PSFA].
class WithinJob {
 public:
  // Writes the caps: the floor of each stage, and its part of `amount`. To the last unit.
  // REQUIRES: the amount and all floors are at most kMostAmount; as many caps as wants, at least
  // one.
  void divide(std::uint64_t amount, std::uint64_t floor, std::span<const Want> wants,
              std::span<std::uint64_t> caps);

 private:
  // Kept from one call to the next.
  MaxMin max_min_;
  std::vector<Claim> claims_;
  std::vector<std::uint64_t> part_;
};

// Divides amounts of one resource that jobs have anyway: the demand of other jobs does not change
// them.
class AmountDivider {
 public:
  explicit AmountDivider(const Resource& resource) : resource_(resource) {}

  // A cycle has ended. The demand of a pair that is not divided among in it is forgotten.
  void begin(Duration period) { demands_.begin(period); }
  // Grants the pairs of one job that have a part caps that add up to `amount`. A floor is at most a
  // sixteenth of that, and zero only if there are fewer units than stages.
  void divide(std::uint64_t amount, std::uint64_t floor, std::span<const Pair> pairs,
              std::span<Grant> grants);

 private:
  const Resource& resource_;
  Demands demands_;
  WithinJob within_job_;
  // Kept from one call to the next.
  std::vector<Want> wants_;
  std::vector<std::uint64_t> caps_;
};

}  // namespace vpfs::allocation
