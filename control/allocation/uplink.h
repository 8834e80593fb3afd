#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/allocation/cycle_state.h"
#include "control/allocation/given.h"

namespace vpfs::allocation {

// A cycle of the parent. Its flows are the numbers of the aggregator's jobs.
struct ParentCycle {
  std::uint64_t term = 0;
  std::uint64_t sequence = 0;
  Duration lease = {};    // from when it was received
  bool complete = false;  // without it nothing is allocated: it asks for a report
  std::span<const FlowGrant> grants;
};

// An aggregator as its parent sees it: one stage, whose flows are the jobs of the stages below.
// The parent's grants become the policy's grants, the capacity and the end of caps.
//
// For each cycle of the parent: on_cycle(); begin_cycle() of the state; when all have answered, or
// at the deadline, report(). While none comes: on_turn() and begin_cycle() in each period. Received
// messages are read before either.
//
// The caps of all stages below never pass what the parent counts as this one's: the largest sum of
// the cycles since the last answer that was not pending. A pure state machine; `now` never goes
// back.
class Uplink {
 public:
  enum class Taken : std::uint8_t {
    applied,
    asked,     // nothing was allocated
    outdated,  // this cycle, or a later one, was applied before
  };
  // What the parent is answered, beside what became of its cycle. Valid until the next call, and
  // until the state forgets a job.
  struct Report {
    bool pending = false;
    std::span<const FlowName> announced;  // goes first
    std::span<const FlowCounters> flows;  // that have changed
  };

  // Both outlive it. REQUIRES: the policy is that of the state.
  Uplink(CycleState& state, GivenPolicy& policy) : state_(state), policy_(policy) {}

  // A connection has begun: the parent knows no flow.
  void connect();
  [[nodiscard]] Taken on_cycle(const ParentCycle& cycle, TimePoint now);
  // Ends the parent's grants if their lease has ended.
  void on_turn(TimePoint now);
  [[nodiscard]] Report report();
  // The same for an answer without counters.
  [[nodiscard]] bool is_pending() const { return !state_.settled(); }

  // A lease of the parent is in force.
  [[nodiscard]] bool in_force() const { return lease_end_.has_value(); }
  [[nodiscard]] std::optional<TimePoint> lease_end() const { return lease_end_; }

 private:
  // A job, by number.
  struct Row {
    std::uint32_t generation = 0;
    bool is_told = false;      // on this connection; what it was follows
    std::uint64_t report = 0;  // the last one that it was live in
    std::uint32_t weight = 0;
    std::uint32_t stages = 0;
    JobTotals totals;
    std::uint64_t cycle = 0;  // the last one that gave it something
    Amounts caps;             // what it gave; zero: no cap, or one of zero
  };

  void end();
  void tell(const LiveJob& job);
  void set_capacity();

  CycleState& state_;
  GivenPolicy& policy_;
  std::vector<Row> rows_;
  std::uint64_t cycles_ = 0;
  std::uint64_t reports_ = 0;
  std::uint64_t term_ = 0;  // of the last applied cycle, as the following
  std::uint64_t sequence_ = 0;
  std::optional<TimePoint> lease_end_;
  std::vector<FlowName> announced_;
  std::vector<FlowCounters> flows_;
};

}  // namespace vpfs::allocation
