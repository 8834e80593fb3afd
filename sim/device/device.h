#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/pipe.h"
#include "base/units.h"
#include "schedulers/request.h"

namespace vpfs::sim {

// A data server in virtual time. It serves `parallelism` requests at once. Each takes a fixed time,
// plus its cost at an equal part of the rate. Further requests wait, first come first served.
// Exact, like Pipe.
class Device {
 public:
  struct Settings {
    std::uint32_t parallelism = 1;               // at least 1
    std::uint64_t cost_per_second = 400 * kMiB;  // 1 ... Pipe::kMostPerSecond
    Duration per_request = Duration::zero();
  };

  explicit Device(Settings settings);

  // The time at which a request that arrives now is done. `now` never goes back.
  // O(log parallelism).
  [[nodiscard]] TimePoint serve(Cost cost, TimePoint now);
  // Applies to requests that arrive from now on.
  void set_rate(std::uint64_t cost_per_second);

 private:
  Settings settings_;
  std::vector<Pipe> channels_;  // a heap; the channel that is free first is in front
};

}  // namespace vpfs::sim
