#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "control/allocation/pair.h"

namespace vpfs::allocation {

// The totals of service elsewhere of all pairs [DSFQ]: of each what the others of its job did while
// both were there. They only grow.
class Siblings {
 public:
  // A cycle has ended. Pairs that are not in it are forgotten, but not their totals: a stage that
  // was away ignores totals below the one that it knows.
  void begin() { ++cycle_; }
  // Adds what the pairs did for each other, and `more` that was done by others; then grants the
  // totals. REQUIRES: all pairs of one job.
  void add(std::span<const Pair> pairs, Cost more, std::span<Grant> grants);

 private:
  struct Known {
    std::uint64_t cycle = 0;  // the last one that had the pair; zero: none
    Cost done = 0;
    Cost in_cycle = 0;
    Cost elsewhere = 0;
  };

  Cost service_in_cycle(const Pair& pair);

  std::uint64_t cycle_ = 0;
  std::vector<Known> known_;  // by pair
};

}  // namespace vpfs::allocation
