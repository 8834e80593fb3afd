#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/data_path/stage/rows_case.h"

namespace vpfs {

// Writes a second of history: reads virtual PFSes that have all been used, 8 at a time, and adds
// what they did. ns_p50 and ns_p99 are for all.
[[nodiscard]] std::vector<RowsSample> measure_history(std::uint32_t rounds);

// An answer about the last time of a day in which 128 virtual PFSes were busy each second.
struct PastSample {
  std::int64_t seconds;
  double ms_p50;
  double ms_p99;
};
[[nodiscard]] std::vector<PastSample> measure_past(std::uint32_t rounds);

}  // namespace vpfs
