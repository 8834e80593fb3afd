#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vpfs {

// The nanoseconds of Classifier::classify() for a request that no rule matches.
struct ClassifySample {
  std::size_t rules;
  std::string attribute;  // all rules match it, each a different value
  double ns_p50;
  double ns_p99;
};

// Measures each attribute with 10, 100 and 1,000 rules. A measured time is the mean of a batch of
// 64 calls, since reading the clock takes as long as a call. Quantiles are over `batches` batches.
// The requests of a batch differ in all attributes.
[[nodiscard]] std::vector<ClassifySample> measure_classify(std::uint32_t batches);

}  // namespace vpfs
