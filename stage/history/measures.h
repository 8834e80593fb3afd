#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/clock.h"

namespace vpfs::stage {

// What the history knows of a virtual PFS in a span. Times are microseconds. `waited` and `served`
// are sums over requests: from arrival to dispatch, and from dispatch to the last byte. The times
// of `held` are those of the heads of queues (see schedulers/hold_times.h).
enum class Measure : std::uint8_t {
  read_bytes,  // moved
  written_bytes,
  operations,  // that ended, metadata among them
  arrivals,    // requests
  cost,        // sent to the data server
  waited,
  served,
  held_by_limit,
  held_by_share,
  held_by_depth,
  held_by_class,
  held_by_kept_slot,
  slow_client,  // a request was kept back because its client was slow
  // Not sums:
  longest_wait,  // of those that were sent, and of the oldest that is queued at the end of a second
  queued,        // bytes, at the end of a second: the largest
};
inline constexpr std::size_t kMeasures = 15;
inline constexpr std::size_t kSummedMeasures = std::to_underlying(Measure::longest_wait);

struct Measures : std::array<std::uint64_t, kMeasures> {
  Measures() { fill(0); }

  [[nodiscard]] std::uint64_t& of(Measure what) { return (*this)[std::to_underlying(what)]; }
  [[nodiscard]] std::uint64_t of(Measure what) const { return (*this)[std::to_underlying(what)]; }

  // One of those that are times.
  [[nodiscard]] Duration time(Measure what) const {
    return std::chrono::microseconds(std::min<std::uint64_t>(of(what), INT64_MAX / 1000));
  }

  // Adds what followed.
  void add(const Measures& later);
  // Adds those of another virtual PFS in the same span.
  void merge(const Measures& other);

  // By this the busiest are chosen: what it got, and what it still waits for.
  [[nodiscard]] std::uint64_t weight() const {
    return of(Measure::cost) + of(Measure::queued) + of(Measure::arrivals);
  }
};

}  // namespace vpfs::stage
