#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "control/allocation/cycle_state.h"
#include "stage/allocations.h"

namespace vpfs::allocation {

// A message to a stage, with copies of what CycleState lends.
struct SentCycle {
  explicit SentCycle(const Outgoing& outgoing, std::uint64_t of_term)
      : head(outgoing), term(of_term), grants(outgoing.grants.begin(), outgoing.grants.end()) {
    head.grants = {};
  }

  Outgoing head;
  std::uint64_t term = 0;
  std::vector<FlowGrant> grants;
};

// Its answer.
struct SentReport {
  StageAnswer head;
  std::vector<std::pair<FlowName, std::string>> announced;
  std::vector<FlowCounters> counters;

  // Tells the state what it says. The answer must be expected.
  void deliver(CycleState& state, StageId stage, TimePoint now) const;
};

// A run of a stage's program, as stage/allocations.h makes it, with flows that come and go.
class ModelStage {
 public:
  static constexpr std::uint32_t kFlows = 3;  // at most
  static constexpr std::uint32_t kJobs = 20;

  // What a connection has announced: generations by flow.
  using Told = std::array<std::optional<std::uint32_t>, kFlows>;
  enum class Applied : std::uint8_t { nothing, applied, outdated, refused };

  ModelStage(std::uint32_t number, std::uint64_t own_incarnation, std::mt19937_64& random)
      : stage(number), incarnation(own_incarnation) {
    change_flows(random);
  }

  void change_flows(std::mt19937_64& random);
  [[nodiscard]] Applied apply(const SentCycle& cycle, const Told& told, TimePoint now);
  // `adds`: its jobs do something meanwhile.
  [[nodiscard]] SentReport answer(const SentCycle& cycle, Told& told, bool adds,
                                  std::mt19937_64& random);
  // Whether the lease has ended with this call.
  bool end_lease(TimePoint now);
  [[nodiscard]] TimePoint lease_end() const { return allocations_.lease_end(); }
  // That are in force.
  [[nodiscard]] Amounts caps() const;

  const std::uint32_t stage;
  const std::uint64_t incarnation;
  TimePoint hangs_until = {};
  TimePoint refuses_until = {};
  Amounts counted;  // by the checker that adds caps up

 private:
  struct Flow {
    bool exists = false;
    std::uint32_t generation = 0;
    std::string job;
    std::uint64_t done = 0;
  };

  std::array<Flow, kFlows> flows_;
  stage::Allocations allocations_;
};

}  // namespace vpfs::allocation
