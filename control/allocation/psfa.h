#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "base/clock.h"
#include "control/allocation/allocation_policy.h"
#include "control/allocation/demands.h"
#include "control/allocation/max_min.h"
#include "control/allocation/within_job.h"

namespace vpfs::allocation {

// PSFA, proportional sharing without false allocation [PSFA], of one resource: caps that follow
// what jobs ask for, so that nothing is allocated to jobs that leave it. The formulas are those of
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
  // are adjacent, in the order of their stages; capacity <= kMostAmount; period > 0.
  struct NoFloor {
    std::uint32_t job = 0;
  };
  [[nodiscard]] std::expected<void, NoFloor> divide(std::span<const Row> rows, Duration period,
                                                    std::uint64_t capacity, std::uint64_t floor,
                                                    std::span<std::uint64_t> caps);

  // The same for as many rows as there are caps; row_at(i) is the one at i.
  template <typename RowAt>
  [[nodiscard]] std::expected<void, NoFloor> divide_rows(RowAt&& row_at, Duration period,
                                                         std::uint64_t capacity,
                                                         std::uint64_t floor,
                                                         std::span<std::uint64_t> caps) {
    demands_.begin(period);
    wants_.resize(caps.size());
    jobs_.clear();
    for (std::size_t i = 0; i < caps.size();) i = take_job(i, row_at);
    return divide_all(capacity, floor, caps);
  }

 private:
  static constexpr std::size_t kAhead = 16;  // rows that are on their way into the cache

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

  // Takes the demands of the rows of one job. Returns the first row of the next one.
  template <typename RowAt>
  std::size_t take_job(std::size_t first, RowAt& row_at) {
    const Row head = row_at(first);
    std::uint64_t demand = 0;
    std::uint64_t stages = 0;
    bool is_unbounded = false;
    std::size_t i = first;
    for (; i < wants_.size(); ++i) {
      const Row row = row_at(i);
      if (i + kAhead < wants_.size()) demands_.prefetch(row_at(i + kAhead).id);
      if (row.job != head.job) break;
      Want& want = wants_[i];
      want = {.demand = demands_.of(row.id, row.arrived, row.limited), .stages = row.stages};
      stages += want.stages;
      is_unbounded |= want.demand == kUnbounded;
      demand = std::min(demand + want.demand, kMostAmount);
    }
    jobs_.push_back({.number = head.job,
                     .first = first,
                     .count = i - first,
                     .stages = stages,
                     .weight = head.weight,
                     .most = bounded(head.most),
                     .demand = is_unbounded ? kUnbounded : demand});
    return i;
  }
  [[nodiscard]] std::expected<void, NoFloor> divide_all(std::uint64_t capacity, std::uint64_t floor,
                                                        std::span<std::uint64_t> caps);
  [[nodiscard]] std::expected<std::uint64_t, NoFloor> set_floors(std::uint64_t capacity,
                                                                 std::uint64_t floor);
  void divide_among_jobs(std::uint64_t amount);

  // Kept from one call to the next, the demands for their history.
  Demands demands_;
  std::vector<Want> wants_;  // of the rows
  std::vector<Job> jobs_;
  MaxMin max_min_;
  WithinJob within_job_;
  std::vector<Claim> claims_;
  std::vector<std::uint64_t> by_demand_;  // of the jobs
  std::vector<std::uint64_t> headroom_;   // likewise
};

// As a policy: bytes, operations and metadata operations apart.
extern const AllocationPolicyKind kPsfa;

}  // namespace vpfs::allocation
