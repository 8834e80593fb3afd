#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "tools/load/run_end.h"

namespace vpfs::load {

// What one application has done on one thread. That thread writes; others may read the live numbers
// at any time, and the rest once the thread has ended.
class Meter {
 public:
  // Completions count from `begin` (inclusive) to `end`, which outlives the meter, in bins of
  // `interval` from `begin` on.
  Meter(Duration begin, const RunEnd& end, Duration interval);

  // A request that took `latency` has completed at `now`, counted from the beginning of the run.
  void completed(Duration now, Duration latency, std::uint64_t bytes);
  void failed() { add(errors_, 1); }
  void verified(std::uint64_t blocks, std::uint64_t failures);

  struct Live {
    std::uint64_t bytes = 0;
    std::uint64_t requests = 0;
    std::uint64_t errors = 0;
    std::uint64_t verify_failures = 0;
  };
  [[nodiscard]] Live live() const;

  struct Bin {
    std::uint64_t bytes = 0;
    std::uint64_t requests = 0;
    Duration longest = {};  // of those that completed in it
  };
  struct Totals {
    std::uint64_t bytes = 0;
    std::uint64_t requests = 0;
    std::uint64_t errors = 0;
    std::uint64_t verified_blocks = 0;
    std::uint64_t verify_failures = 0;
    LatencyHistogram latency;
    Duration last = {};  // when the last request completed, from the end of the warm-up
    std::vector<Bin> bins;
  };
  // Adds this meter's numbers to totals with as many bins, or with none. Call after the run: times
  // that it did not reach have no bins.
  void add_to(Totals& totals) const;

 private:
  using Count = std::atomic<std::uint64_t>;
  // One writer: no locked instruction is needed.
  static void add(Count& count, std::uint64_t more) {
    count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }

  Duration begin_;
  const RunEnd& end_;
  Duration interval_;
  Count live_bytes_ = 0;
  Count live_requests_ = 0;
  Count errors_ = 0;
  Count verify_failures_ = 0;
  std::uint64_t verified_blocks_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t requests_ = 0;
  LatencyHistogram latency_;
  Duration last_ = {};
  std::vector<Bin> bins_;
};

}  // namespace vpfs::load
