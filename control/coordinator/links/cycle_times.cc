#include "control/coordinator/links/cycle_times.h"

#include <algorithm>
#include <vector>

namespace vpfs::coordinator {

void RecentCycles::add(const CycleTimes& times) {
  last_[cycles_++ % kKept] = times.total;
  late_ += times.late;
  sum_ += times.total;
}

RecentCycles::Summary RecentCycles::summary() const {
  Summary summary = {.cycles = cycles_, .late = late_, .sum = sum_};
  summary.kept = static_cast<std::size_t>(std::min<std::uint64_t>(cycles_, kKept));
  if (summary.kept == 0) return summary;
  std::vector<Duration> sorted(last_.begin(),
                               last_.begin() + static_cast<std::ptrdiff_t>(summary.kept));
  std::ranges::sort(sorted);
  // The least one that so many in a hundred do not exceed.
  const auto quantile = [&](std::size_t percent) {
    return sorted[(summary.kept * percent + 99) / 100 - 1];
  };
  summary.p50 = quantile(50);
  summary.p99 = quantile(99);
  summary.max = sorted.back();
  return summary;
}

}  // namespace vpfs::coordinator
