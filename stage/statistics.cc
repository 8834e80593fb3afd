#include "stage/statistics.h"

#include <algorithm>
#include <chrono>

namespace vpfs::stage {

void Statistic::merge(const Statistic& other) {
  if (other.samples == 0) return;
  min = samples == 0 ? other.min : std::min(min, other.min);
  max = std::max(max, other.max);
  samples += other.samples;
  if (__builtin_add_overflow(sum, other.sum, &sum)) sum = UINT64_MAX;
  add_squares(other.sum_of_squares);
}

void IoStatistics::record(IoKind kind, Bytes moved, Duration time, TimePoint now) {
  if (kind == IoKind::metadata) return;
  const bool is_read = kind == IoKind::read;
  const std::int64_t microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  (is_read ? read_bytes : write_bytes).add(moved.count);
  (is_read ? read_time : write_time)
      .add(static_cast<std::uint64_t>(std::max<std::int64_t>(microseconds, 0)));
  last = now;
}

void IoStatistics::merge(const IoStatistics& other) {
  const bool is_empty = last == TimePoint{};
  since = is_empty ? other.since : std::min(since, other.since);
  last = is_empty ? other.last : std::max(last, other.last);
  read_bytes.merge(other.read_bytes);
  write_bytes.merge(other.write_bytes);
  read_time.merge(other.read_time);
  write_time.merge(other.write_time);
}

}  // namespace vpfs::stage
