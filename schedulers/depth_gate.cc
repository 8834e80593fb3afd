#include "schedulers/depth_gate.h"

#include "base/check.h"

namespace vpfs {

void DepthGate::finish(Cost cost) {
  VPFS_ASSERT(requests_ > 0 && cost_ >= cost);
  --requests_;
  cost_ -= cost;
}

std::string_view DepthGate::reason(Cost cost) const {
  if (admits(cost)) return {};
  if (requests_ >= depth_.requests) return "as many requests are outstanding as the depth allows";
  return "as much cost is outstanding as the depth allows";
}

}  // namespace vpfs
