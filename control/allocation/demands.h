#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "control/allocation/max_min.h"
#include "schedulers/divider.h"

namespace vpfs::allocation {

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
  void begin(Duration period);
  // What the pair wants, in units each second: at most kMostAmount, or kUnbounded. REQUIRES: once
  // for each pair in a cycle.
  [[nodiscard]] std::uint64_t of(std::uint32_t pair, std::uint64_t arrived, Duration limited);
  // Fetches what of() will need into the cache.
  void prefetch(std::uint32_t pair) const {
    if (pair < histories_.size()) __builtin_prefetch(&histories_[pair], 1);
  }

 private:
  static constexpr std::size_t kCycles = kRemembered + 1;

  // By the number of the cycle modulo kCycles.
  struct History {
    std::uint64_t cycle = 0;  // of the last one; zero: none
    std::array<std::uint64_t, kCycles> wanted = {};
    std::array<bool, kCycles> limited = {};
  };

  std::uint64_t cycle_ = 0;
  Divider period_;  // in nanoseconds
  Duration held_ = {};
  std::vector<History> histories_;  // by pair
};

// Amounts that are not unbounded stay below kMostAmount, so that no sum of two overflows.
__extension__ using WideAmount = unsigned __int128;
[[nodiscard]] constexpr std::uint64_t bounded(WideAmount amount) {
  return amount < kMostAmount ? static_cast<std::uint64_t>(amount) : kMostAmount;
}

}  // namespace vpfs::allocation
