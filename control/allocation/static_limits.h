#pragma once

#include "control/allocation/allocation_policy.h"

namespace vpfs::allocation {

// The limits that the administrator wrote, on each stage.
extern const AllocationPolicyKind kStatic;

}  // namespace vpfs::allocation
