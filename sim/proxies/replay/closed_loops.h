#pragma once

#include <cstdint>
#include <vector>

#include "sim/proxies/replay/recorded_io.h"

namespace vpfs::sim {

// Requests of one source, each of which comes a think time after the end of the one before.
struct ClosedLoop {
  struct Step {
    Duration think = {};  // of the first: since the beginning
    IoKind kind = IoKind::read;
    Bytes size;
  };
  std::uint32_t source = 0;
  std::vector<Step> steps;
  TimePoint last_end = {};
  Duration longest_step = {};  // from an end to the next
  // It was at work when the recording ended, and had more than one request. So it goes on, with its
  // requests from the first on.
  bool goes_on = false;
  Duration mean_think = {};  // before it begins anew
};

// What an application does next waits for what it has done, as far as that can be seen: a request
// follows the latest end of its source that none has followed yet. One without such an end begins a
// loop at its time.
[[nodiscard]] std::vector<ClosedLoop> closed_loops(const RecordedLoad& load);

}  // namespace vpfs::sim
