#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"

namespace vpfs::sim {

// Random numbers that are the same on every machine: xoshiro256** (Blackman and Vigna, 2018), and
// distributions in integers.
class Random {
 public:
  explicit Random(std::uint64_t seed);
  // One of many independent sequences of a seed.
  Random(std::uint64_t seed, std::uint64_t stream);

  [[nodiscard]] std::uint64_t next();
  // From 0 to bound - 1, all equally likely. REQUIRES: bound > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);
  // True in `percent` of all cases.
  [[nodiscard]] bool chance(std::uint64_t percent) { return below(100) < percent; }
  // Exponentially distributed, as the times between the arrivals of a Poisson process are. Exact to
  // 2^-31 of the mean. REQUIRES: mean >= 0.
  [[nodiscard]] Duration exponential(Duration mean);

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace vpfs::sim
