#include "control/allocation/within_job.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::allocation {

void WithinJob::divide(std::uint64_t amount, std::uint64_t floor, std::span<const Want> wants,
                       std::span<std::uint64_t> caps) {
  VPFS_ASSERT(caps.size() == wants.size());
  claims_.resize(wants.size());
  for (std::size_t i = 0; i < wants.size(); ++i) {
    const Want& want = wants[i];
    const std::uint64_t floors = floor * want.stages;
    const std::uint64_t beyond = want.demand > floors ? want.demand - floors : 0;
    claims_[i] = {.weight = want.stages, .demand = want.demand == kUnbounded ? kUnbounded : beyond};
  }
  const std::uint64_t left = max_min_.fill(amount, claims_, caps);
  if (left > 0) {
    for (Claim& each : claims_) each.demand = kUnbounded;
    part_.resize(wants.size());
    (void)max_min_.fill(left, claims_, part_);
    for (std::size_t i = 0; i < wants.size(); ++i) caps[i] += part_[i];
  }
  for (std::size_t i = 0; i < wants.size(); ++i) caps[i] += floor * wants[i].stages;
}

void AmountDivider::divide(std::uint64_t amount, std::uint64_t floor, std::span<const Pair> pairs,
                           std::span<Grant> grants) {
  VPFS_ASSERT(grants.size() == pairs.size());
  amount = std::min(amount, kMostAmount);
  wants_.clear();
  std::uint64_t stages = 0;
  for (const Pair& pair : pairs) {
    if (!has_part(pair, resource_)) continue;
    wants_.push_back({.demand = demands_.of(pair.id, pair.arrived.*resource_.amount, pair.limited),
                      .stages = pair.stages});
    stages += pair.stages;
  }
  if (stages == 0) return;
  const std::uint64_t of_each = std::min(floor, amount / (kFloorPart * stages));
  const std::uint64_t least = std::min(std::max<std::uint64_t>(of_each, 1), amount / stages);
  caps_.resize(wants_.size());
  within_job_.divide(amount - least * stages, least, wants_, caps_);
  std::size_t next = 0;
  for (std::size_t i = 0; i < grants.size(); ++i) {
    if (has_part(pairs[i], resource_)) grants[i].*resource_.grant = caps_[next++];
  }
}

}  // namespace vpfs::allocation
