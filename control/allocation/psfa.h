#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/allocation/max_min.h"
#include "control/allocation/policy.h"
#include "schedulers/divider.h"

namespace vpfs::allocation {

// PSFA, proportional sharing without false allocation [PSFA], of one resource: caps that follow
// what jobs ask for, so that nothing is allocated to those who leave it. A job that its cap held
// back wants more than it got, whatever has arrived: it is unbounded for that cycle and the next
// kRemembered. The formulas are those of ALGORITHMS, as docs/control.md has them.
class Psfa {
 public:
  static constexpr std::size_t kRemembered = 3;  // cycles before this one
  // A pair is limited if its cap held it for this part of the cycle.
  static constexpr int kLimitedPart = 10;
  // All floors together are at most this part of the capacity.
  static constexpr std::uint64_t kFloorPart = 16;

  struct Row {
    std::uint32_t id = 0;  // of the pair, as Pair has it
    std::uint32_t job = 0;
    std::uint64_t weight = 1;
    std::uint64_t most = 0;  // of the job; 0: no bound
    std::uint64_t arrived = 0;
    Duration limited = {};
  };

  // Writes a cap for each row, in units each second. Rows that are missing are forgotten. An error,
  // which tells the job: a floor would be zero; the caps are not written. REQUIRES: rows of one job
  // stand together, in the order of their stages; capacity <= kMostAmount; period > 0.
  struct NoFloor {
    std::uint32_t job = 0;
  };
  [[nodiscard]] std::expected<void, NoFloor> divide(std::span<const Row> rows, Duration period,
                                                    std::uint64_t capacity, std::uint64_t floor,
                                                    std::span<std::uint64_t> caps);

 private:
  // The cycles that a pair was part of, the last one first.
  struct History {
    std::uint64_t cycle = 0;  // of the last one; zero: none
    std::array<std::uint64_t, kRemembered + 1> wanted = {};
    std::array<bool, kRemembered + 1> limited = {};
  };
  // The rows of one job.
  struct Job {
    std::size_t first = 0;
    std::size_t count = 0;
    std::uint64_t floor = 0;  // of each pair
    std::uint64_t demand = 0;
    std::uint64_t weight = 1;
    std::uint64_t most = 0;
  };

  // `period` in nanoseconds; `held` is what makes the pair limited.
  [[nodiscard]] std::uint64_t demand_of(const Row& row, const Divider& period, Duration held);
  void find_jobs(std::span<const Row> rows);
  [[nodiscard]] std::expected<std::uint64_t, NoFloor> set_floors(std::span<const Row> rows,
                                                                 std::uint64_t capacity,
                                                                 std::uint64_t floor);
  void set_demands();
  void divide_among_jobs(std::uint64_t amount);
  void divide_within(const Job& job, std::uint64_t amount, std::span<std::uint64_t> caps);

  std::uint64_t cycle_ = 0;
  std::vector<History> histories_;  // by pair
  // Kept from one call to the next.
  MaxMin max_min_;
  std::vector<Job> jobs_;
  std::vector<std::uint64_t> demands_;  // of the rows
  std::vector<Claim> claims_;
  std::vector<std::uint64_t> by_demand_;  // of the jobs
  std::vector<std::uint64_t> headroom_;   // likewise
  std::vector<std::uint64_t> part_;
};

// As a policy: bytes, operations and metadata operations apart.
extern const PolicyKind kPsfa;

}  // namespace vpfs::allocation
