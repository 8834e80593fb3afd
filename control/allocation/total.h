#pragma once

#include "control/allocation/allocation_policy.h"

namespace vpfs::allocation {

// Total-service proportional sharing [DSFQ]: each stage learns what all others did for a job, and
// its scheduler counts that as if the job had had it here. So jobs share by weight what they get on
// all stages together, however many each of them uses.
//
// The totals only grow: a stage applies the difference to the one before.
//
// A job with a bound (Pair::most) has caps too: its bound is divided among its stages by demand, as
// PSFA does within a job. The capacity of the site is not divided.
extern const AllocationPolicyKind kTotal;

}  // namespace vpfs::allocation
