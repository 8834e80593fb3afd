#pragma once

#include "control/allocation/policy.h"

namespace vpfs::allocation {

// The limits that the administrator wrote, on each stage.
extern const PolicyKind kStatic;

}  // namespace vpfs::allocation
