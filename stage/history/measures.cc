#include "stage/history/measures.h"

#include <algorithm>

namespace vpfs::stage {

void Measures::add(const Measures& later) {
  for (std::size_t i = 0; i < kSummedMeasures; ++i) (*this)[i] += later[i];
  of(Measure::longest_wait) = std::max(of(Measure::longest_wait), later.of(Measure::longest_wait));
  of(Measure::queued) = std::max(of(Measure::queued), later.of(Measure::queued));
}

void Measures::merge(const Measures& other) {
  for (std::size_t i = 0; i < kSummedMeasures; ++i) (*this)[i] += other[i];
  of(Measure::longest_wait) = std::max(of(Measure::longest_wait), other.of(Measure::longest_wait));
  of(Measure::queued) += other.of(Measure::queued);
}

}  // namespace vpfs::stage
