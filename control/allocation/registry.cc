#include <algorithm>
#include <array>

#include "control/allocation/allocation_policy.h"
#include "control/allocation/psfa.h"
#include "control/allocation/static_limits.h"
#include "control/allocation/total.h"

namespace vpfs::allocation {

std::span<const AllocationPolicyKind* const> policies() {
  static constexpr std::array<const AllocationPolicyKind*, 3> kAll = {&kTotal, &kPsfa, &kStatic};
  return kAll;
}

const AllocationPolicyKind* find_policy(std::string_view name) {
  const auto found = std::ranges::find(policies(), name, &AllocationPolicyKind::name);
  return found == policies().end() ? nullptr : *found;
}

}  // namespace vpfs::allocation
