#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/wide.h"
#include "control/allocation/max_min.h"
#include "schedulers/divider.h"

namespace vpfs::allocation {

// Amounts that are not unbounded stay below kMostAmount, so that no sum of two overflows.
[[nodiscard]] constexpr std::uint64_t bounded(Wide amount) {
  return amount < kMostAmount ? static_cast<std::uint64_t>(amount) : kMostAmount;
}

// What pairs ask for of one resource, from what they did in the last few cycles (ALGORITHMS:
// [PSFA]). A pair that its cap held back wants more than it got, whatever has arrived: it is
// unbounded for that cycle and the next kRemembered.
class Demands {
 public:
  static constexpr std::size_t kRemembered = 3;  // cycles before this one
  // A pair is limited if its cap held it for this part of the cycle.
  static constexpr int kLimitedPart = 10;

  // A cycle that took `period` has ended. Pairs that are not asked about in it are forgotten.
  // REQUIRES: period > 0.
  void begin(Duration period) {
    VPFS_ASSERT(period > Duration::zero());
    ++cycle_;
    period_ = Divider(static_cast<std::uint64_t>(period.count()));
    held_ = period / kLimitedPart;
  }
  // What the pair wants, in units each second: at most kMostAmount, or kUnbounded. REQUIRES: once
  // for each pair in a cycle.
  [[nodiscard]] std::uint64_t of(std::uint32_t pair, std::uint64_t arrived, Duration limited) {
    if (pair >= histories_.size()) histories_.resize(std::size_t{pair} + 1);
    History& history = histories_[pair];
    // Cycles begin at one, so that a history of zeros is never of the one before.
    if (history.cycle + 1 != cycle_) history = {};
    history.cycle = cycle_;
    history.wanted[cycle_ % kCycles] = each_second(arrived);
    history.limited = (history.limited << 1U | (limited >= held_ ? 1U : 0U)) & kAllCycles;
    const std::uint64_t largest = std::ranges::max(history.wanted);
    const std::uint64_t demand = bounded(Wide{largest} + largest / 4 + (largest % 4 > 0 ? 1 : 0));
    return history.limited != 0 ? kUnbounded : demand;
  }
  // Fetches what of() will need into the cache.
  void prefetch(std::uint32_t pair) const {
    if (pair < histories_.size()) __builtin_prefetch(&histories_[pair], 1);
  }

 private:
  static constexpr std::size_t kCycles = kRemembered + 1;
  static constexpr std::uint32_t kAllCycles = (1U << kCycles) - 1;

  struct History {
    std::array<std::uint64_t, kCycles> wanted = {};  // by the number of the cycle modulo kCycles
    std::uint32_t cycle = 0;                         // the last one; zero: none
    std::uint32_t limited = 0;                       // a bit for each cycle, the last one first
  };

  // Rounded up.
  [[nodiscard]] std::uint64_t each_second(std::uint64_t arrived) const {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    if (arrived < std::uint64_t{1} << 34) {
      const Divider::Result exact = period_.divide(arrived * kSecond);
      return exact.quotient + (exact.remainder > 0 ? 1 : 0);
    }
    const Wide nanoseconds = period_.divisor();
    return bounded((Wide{arrived} * kSecond + nanoseconds - 1) / nanoseconds);
  }

  std::uint32_t cycle_ = 1;
  Divider period_;  // in nanoseconds
  Duration held_ = {};
  std::vector<History> histories_;  // by pair
};

}  // namespace vpfs::allocation
