#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace vpfs {

// Counts durations in log-linear buckets: 16 per power of two from 1 us to over an hour, so any
// quantile is at most 6.25 % (below 1 us: 64 ns) above the true value; longer ones count in the
// last bucket, negative ones as zero. It keeps counts for the powers of two between the shortest
// and the longest duration only: 128 bytes for each, 4.1 KiB for all. record() is a few
// instructions; it allocates when a duration extends the range so far.
// Not thread-safe: one owner, or merge() copies.
class LatencyHistogram {
 public:
  struct Bucket {
    Duration upper;  // exclusive
    std::uint64_t count;
  };

  void record(Duration latency);
  void merge(const LatencyHistogram& other);
  void clear();

  [[nodiscard]] std::uint64_t count() const { return count_; }
  // The upper edge of the bucket that holds the q-quantile (0 <= q <= 1), but never above max();
  // zero when empty.
  [[nodiscard]] Duration quantile(double q) const;
  [[nodiscard]] Duration mean() const;
  [[nodiscard]] Duration sum() const { return sum_; }
  [[nodiscard]] Duration max() const { return max_; }
  // The non-empty buckets, ascending.
  [[nodiscard]] std::vector<Bucket> buckets() const;

  // A histogram of other buckets is taken as an empty one.
  template <typename Archive>
  void archive(Archive& fields) {
    std::uint64_t buckets = kBuckets;
    fields("buckets", buckets);
    if (buckets != kBuckets) return;
    fields("first", first_);
    fields("counts", counts_);
    fields("count", count_);
    fields("sum", sum_);
    fields("max", max_);
    if constexpr (Archive::kReads) check_buckets();
  }

 private:
  void check_buckets();

  static constexpr int kSubBits = 4;
  static constexpr int kPowers = 33;
  static constexpr std::size_t kBuckets = static_cast<std::size_t>(kPowers) << kSubBits;

  static std::size_t index_of(Duration latency);
  static Duration upper_edge(std::size_t index);
  // The bucket's counter, created if needed.
  std::uint64_t& count_of(std::size_t index);

  std::size_t first_ = 0;              // bucket of counts_[0], a whole power of two
  std::vector<std::uint64_t> counts_;  // of whole powers of two
  std::uint64_t count_ = 0;
  Duration sum_ = Duration::zero();
  Duration max_ = Duration::zero();
};

}  // namespace vpfs
