#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "base/clock.h"
#include "control/allocation/demands.h"
#include "control/allocation/max_min.h"
#include "control/allocation/policy.h"
#include "control/allocation/within_job.h"

namespace vpfs::allocation {

// PSFA, proportional sharing without false allocation [PSFA], of one resource: caps that follow
// what jobs ask for, so that nothing is allocated to those who leave it. The formulas are those of
// ALGORITHMS, as docs/control.md has them. An aggregator counts as the stages below it.
class Psfa {
 public:
  struct Row {
    std::uint32_t id = 0;  // of the pair, as Pair has it
    std::uint32_t job = 0;
    std::uint64_t weight = 1;
    std::uint64_t most = 0;  // of the job; 0: no bound
    std::uint64_t arrived = 0;
    Duration limited = {};
    std::uint32_t stages = 1;
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

  // The same in parts, for several resources in one pass: a cycle has ended, its rows, the caps.
  void begin(Duration period);
  void add(const Row& row);
  [[nodiscard]] std::expected<void, NoFloor> finish(std::uint64_t capacity, std::uint64_t floor,
                                                    std::span<std::uint64_t> caps);
  // Fetches what add() will need into the cache.
  void prefetch(std::uint32_t id) const { demands_.prefetch(id); }

 private:
  // The rows of one job.
  struct Job {
    std::uint32_t number = 0;
    std::size_t first = 0;
    std::size_t count = 0;
    std::uint64_t stages = 0;
    std::uint64_t weight = 1;
    std::uint64_t most = 0;
    std::uint64_t floor = 0;   // of each stage
    std::uint64_t demand = 0;  // kUnbounded if that of one of its rows is
  };

  [[nodiscard]] std::expected<std::uint64_t, NoFloor> set_floors(std::uint64_t capacity,
                                                                 std::uint64_t floor);
  void divide_among_jobs(std::uint64_t amount);

  Demands demands_;
  std::vector<Want> wants_;  // of the rows
  std::vector<Job> jobs_;
  std::uint64_t stages_ = 0;
  // Kept from one call to the next.
  MaxMin max_min_;
  WithinJob within_job_;
  std::vector<Claim> claims_;
  std::vector<std::uint64_t> by_demand_;  // of the jobs
  std::vector<std::uint64_t> headroom_;   // likewise
};

// As a policy: bytes, operations and metadata operations apart.
extern const PolicyKind kPsfa;

}  // namespace vpfs::allocation
