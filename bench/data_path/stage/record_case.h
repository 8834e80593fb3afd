#pragma once

#include <cstdint>

namespace vpfs {

// The time of a request of one of 1,000 virtual PFSes in a stage, from its arrival to its end;
// medians over batches of 1,000. Rounds with and without a recording alternate.
struct RecordSample {
  double ns_off;
  double ns_on;
  double ns_of_it;  // the median of the difference in a round
};
[[nodiscard]] RecordSample measure_record(std::uint32_t batches);

}  // namespace vpfs
