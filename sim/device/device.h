#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/pipe.h"
#include "base/units.h"
#include "schedulers/request.h"

namespace vpfs::sim {

// A data server in virtual time: `parallelism` requests are served at once, each for a fixed time
// plus its cost at an equal part of the rate. Further ones wait, first come first served. Exact, as
// Pipe is.
class Device {
 public:
  struct Settings {
    std::uint32_t parallelism = 1;               // at least 1
    std::uint64_t cost_per_second = 400 * kMiB;  // 1 ... Pipe::kMostPerSecond
    Duration per_request = Duration::zero();
  };

  explicit Device(Settings settings);

  // When a request that comes now is done. `now` never goes back. O(log parallelism).
  [[nodiscard]] TimePoint serve(Cost cost, TimePoint now);
  // For requests that come from now on.
  void set_rate(std::uint64_t cost_per_second);

 private:
  Settings settings_;
  std::vector<Pipe> channels_;  // a heap, the one that is free first in front
};

}  // namespace vpfs::sim
