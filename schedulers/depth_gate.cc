#include "schedulers/depth_gate.h"

#include "base/check.h"

namespace vpfs {

void DepthGate::vacate(Cost cost) {
  VPFS_ASSERT(before_.requests > 0);
  --before_.requests;
  before_.cost -= before_.requests == 0 ? before_.cost : std::min(counted(cost), before_.cost);
}

std::string_view DepthGate::reason(Cost cost) const {
  if (admits(cost)) return {};
  if (requests() >= depth_.requests) return "as many requests are outstanding as the depth allows";
  return "as much cost is outstanding as the depth allows";
}

}  // namespace vpfs
