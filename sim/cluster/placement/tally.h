#pragma once

#include <array>
#include <chrono>
#include <utility>

#include "base/units.h"
#include "base/wide.h"
#include "sim/cluster/placement/profile.h"

namespace vpfs::sim {

// A sum of durations. Those of the tasks of an application may be longer than 292 years together.
using WideDuration = std::chrono::duration<SignedWide, std::nano>;

// What the tasks of an application did, all of them together.
struct Tally {
  std::array<WideDuration, 4> times = {};  // in steps, by their kind
  // Bytes of reads and writes, without staging and replicas.
  Bytes local;    // on devices of the task's own node
  Bytes remote;   // on those of other nodes
  Bytes central;  // on central servers
  Bytes staged;   // in and out, also what is still on its way out when the application has ended

  [[nodiscard]] WideDuration& time(Step step) { return times[std::to_underlying(step)]; }
  [[nodiscard]] WideDuration time(Step step) const { return times[std::to_underlying(step)]; }
};

}  // namespace vpfs::sim
