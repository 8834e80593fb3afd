#pragma once

#include "base/clock.h"
#include "control/admin/stage_snapshot.h"
#include "control/wire/control.pb.h"
#include "stage/config/config.h"

namespace vpfs::control {

// Adds what a snapshot says of the whole stage.
void add_totals(StatsReply& reply, const StageSnapshot& snapshot, const stage::Config& config,
                WallTime now);
// Adds the virtual PFSes and totals of a snapshot. `config` is the configuration in force and `now`
// the time of day of the snapshot.
void add_stage(StatsReply& reply, const StageSnapshot& snapshot, const stage::Config& config,
               WallTime now);
// One virtual PFS. `at` is the time of the snapshot.
void fill(VirtualPfs& to, const StageSnapshot::Row& from, const stage::Config& config, TimePoint at,
          WallTime now);

}  // namespace vpfs::control
