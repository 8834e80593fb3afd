#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "control/coordinator/links/cycle_log.h"

namespace vpfs::coordinator {

// What the last cycles took, and all together.
class RecentCycles {
 public:
  static constexpr std::size_t kKept = 1000;

  struct Summary {
    std::uint64_t cycles = 0;  // all
    std::uint64_t late = 0;    // answers, of all
    Duration sum = {};         // of all
    // The last cycles, in the order of their lengths.
    std::size_t kept = 0;
    Duration p50 = {};
    Duration p99 = {};
    Duration max = {};
  };

  // Does not allocate.
  void add(const CycleTimes& times);
  [[nodiscard]] Summary summary() const;

 private:
  std::array<Duration, kKept> last_ = {};
  std::uint64_t cycles_ = 0;
  std::uint64_t late_ = 0;
  Duration sum_ = {};
};

}  // namespace vpfs::coordinator
