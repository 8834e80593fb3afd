#pragma once

#include "sim/cluster/network/class_policy.h"

namespace vpfs::sim {

inline ClassPolicy with_equal_shares(ClassPolicy policy) {
  policy.sharing = Sharing::equal;
  return policy;
}

}  // namespace vpfs::sim
