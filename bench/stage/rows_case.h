#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vpfs {

// What it takes to read or retire many virtual PFSes while others wait for the lock of the stage,
// which the measurement takes as Dispatcher does.
struct RowsSample {
  std::size_t virtual_pfs;
  double ns_p50;  // copy: of all; retire: of each
  double ns_p99;
  double lock_us_max;  // the longest that a round holds the lock at a time, median over the rounds
};

// Copies all counters, 128 rows at a time. Every virtual PFS has been used.
[[nodiscard]] std::vector<RowsSample> measure_copy(std::uint32_t rounds);
// Finds virtual PFSes that are idle, 128 rows at a time, and retires them, 4 at a time.
[[nodiscard]] std::vector<RowsSample> measure_retire(std::uint32_t rounds);

}  // namespace vpfs
