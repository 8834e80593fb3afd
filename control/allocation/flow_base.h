#pragma once

#include <cstdint>
#include <string_view>

#include "control/allocation/cycle_types.h"

namespace vpfs::allocation {

// The counters of a flow when they were last reported, from which differences are made. Counters
// are not trusted: none can overflow anything.
class FlowBase {
 public:
  struct Difference {
    Amounts arrived;
    QueueTimes times;
    Cost done = 0;
  };
  // A counter that cannot be.
  struct Lie {
    std::string_view counter;
    std::string_view what;  // it did
    std::uint64_t before = 0;
    std::uint64_t now = 0;
  };

  // The flow has started after the last report: all that it did counts.
  void start_at_zero() { *this = {}, is_set_ = true; }
  // The next counters count as nothing.
  void clear() { *this = {}; }

  // What was added since the last call. Without a base, or with a counter that went backwards or
  // grew by more than `most`, it is nothing. In any case the counters are the new base, so that one
  // lie does not make lies of all that follows. `lie` says what was wrong; it is not touched
  // otherwise. Returns whether the counters are credible.
  [[nodiscard]] bool take(const FlowCounters& counters, std::uint64_t most, Difference& difference,
                          Lie& lie);

 private:
  FlowCounters before_;
  bool is_set_ = false;
};

}  // namespace vpfs::allocation
