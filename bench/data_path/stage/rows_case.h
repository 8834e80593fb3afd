#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vpfs {

// The cost of reading or retiring many virtual PFSes. The measurement takes the stage's lock as
// Dispatcher does, while others would wait for it.
struct RowsSample {
  std::size_t virtual_pfs;
  double ns_p50;  // copy: for all; retire: for each
  double ns_p99;
  double lock_us_max;  // longest time that a round holds the lock, median over the rounds
};

// Copies the counters of all virtual PFSes, 128 rows at a time. All have been used.
[[nodiscard]] std::vector<RowsSample> measure_copy(std::uint32_t rounds);
// Looks for idle virtual PFSes, 128 rows at a time, and retires them, 4 at a time.
[[nodiscard]] std::vector<RowsSample> measure_retire(std::uint32_t rounds);

}  // namespace vpfs
