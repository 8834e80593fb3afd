#pragma once

#include <array>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "sim/cluster/placement/profile.h"

namespace vpfs::sim {

// What the tasks of an application did, all of them together.
struct Tally {
  std::array<Duration, 4> times = {};  // in steps, by their kind
  // Bytes of reads and writes, without staging and replicas.
  Bytes local;    // on devices of the task's own node
  Bytes remote;   // on those of other nodes
  Bytes central;  // on central servers
  Bytes staged;   // in and out, also what is still on its way out when the application has ended

  [[nodiscard]] Duration& time(Step step) { return times[std::to_underlying(step)]; }
  [[nodiscard]] Duration time(Step step) const { return times[std::to_underlying(step)]; }
};

}  // namespace vpfs::sim
