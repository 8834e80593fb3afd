#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace vpfs {

// A sum of durations. In 64 bits, those of a thousand requests that wait at any time would not fit
// into nanoseconds after 107 days.
using LongDuration = std::chrono::duration<std::uint64_t, std::micro>;

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
  [[nodiscard]] LongDuration sum() const { return earlier_ + whole_microseconds(sum_); }
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
    std::uint64_t earlier = earlier_.count();
    fields("earlier", earlier);
    earlier_ = LongDuration(earlier);
    fields("max", max_);
    if constexpr (Archive::kReads) {
      if (sum_ >= kMostSum) carry();
      check_buckets();
    }
  }

 private:
  void check_buckets();
  static constexpr LongDuration whole_microseconds(std::uint64_t nanoseconds) {
    return LongDuration(nanoseconds / 1000);
  }
  void carry();

  static constexpr std::uint64_t kMostSum = std::uint64_t{1} << 62U;
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
  // The sum is that of both. The first is in nanoseconds, and below kMostSum.
  std::uint64_t sum_ = 0;
  LongDuration earlier_ = LongDuration::zero();
  Duration max_ = Duration::zero();
};

}  // namespace vpfs
