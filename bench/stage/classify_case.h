#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vpfs {

// What Classifier::classify() takes for a request that no rule matches, in nanoseconds.
struct ClassifySample {
  std::size_t rules;
  std::string attribute;  // what all rules demand, each another value of it
  double ns_p50;
  double ns_p99;
};

// For each attribute and 10, 100 and 1,000 rules. Each time that counts is the mean over a batch of
// 64 calls, so that reading the clock, which takes as long as a call, adds little; the quantiles
// are over `batches` batches. The requests of a batch differ in what they show.
[[nodiscard]] std::vector<ClassifySample> measure_classify(std::uint32_t batches);

}  // namespace vpfs
