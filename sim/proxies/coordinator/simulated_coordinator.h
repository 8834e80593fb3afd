#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/allocation/cycle_state.h"
#include "sim/engine/engine.h"
#include "sim/proxies/server/proxied_server.h"
#include "stage/allocations.h"
#include "stage/cap_time.h"
#include "stage/virtual_pfs.h"

namespace vpfs::sim {

// From when to when a coordinator is dead.
struct Absence {
  Duration from = {};
  Duration until = {};
};

struct CoordinatorSettings {
  const allocation::AllocationPolicyKind* policy = nullptr;  // not null
  allocation::AllocationPolicySettings amounts;  // capacity and floor of all servers together
  Duration period = std::chrono::milliseconds(50);
  Duration lease = std::chrono::seconds(1);
  Duration transit = std::chrono::milliseconds(500);
  Duration round_trip = std::chrono::microseconds(200);  // to a stage and back; below the period
  std::optional<Absence> away;
};

// A coordinator over simulated servers: the cycles that vpfs-coordinator has, with its own
// policies, and messages that take half a round trip each. The answer to a cycle is the next
// report.
class SimulatedCoordinator {
 public:
  // `engine` and the servers outlive it. `abilities` are those of all stages.
  SimulatedCoordinator(Engine& engine, const CoordinatorSettings& settings,
                       std::vector<ProxiedServer*> servers, const allocation::Abilities& abilities);
  SimulatedCoordinator(const SimulatedCoordinator&) = delete;
  SimulatedCoordinator& operator=(const SimulatedCoordinator&) = delete;

  [[nodiscard]] std::uint64_t cycles() const { return cycles_; }

 private:
  // What a stage has told a coordinator of one virtual PFS.
  struct Told {
    bool announced = false;
    std::uint32_t generation = 0;
    std::uint64_t arrived = 0;  // requests
    Cost done = 0;
    stage::CapTime limited;

    bool operator==(const Told&) const = default;
  };
  // A stage, and the one message that is under way to it or from it.
  struct StageLine {
    ProxiedServer* server = nullptr;
    std::string name;
    allocation::StageId id;
    std::vector<Told> told;  // by number of the virtual PFS, as a flow has it
    stage::Cycle cycle;
    std::vector<allocation::FlowGrant> grants;
    bool allocates = false;  // else it only asks for a report
    bool wants_report = false;
    allocation::StageAnswer answer;
    std::vector<std::uint32_t> new_flows;
    std::vector<allocation::FlowCounters> counters;
  };

  void begin_life();
  void cycle();
  // The messages have come to the stages, or their answers to the coordinator.
  void deliver(std::uint64_t term);
  void take_answers(std::uint64_t term);
  void apply(StageLine& link);
  void report(StageLine& link);

  Engine& engine_;
  CoordinatorSettings settings_;
  allocation::Abilities abilities_;
  std::vector<StageLine> links_;
  std::vector<std::uint32_t> by_id_;             // places in links_
  std::vector<std::uint32_t> under_way_;         // likewise, of the present cycle
  std::optional<allocation::CycleState> state_;  // nothing: it is dead
  std::uint64_t term_ = 0;                       // of the last life
  std::uint64_t cycles_ = 0;
  std::vector<stage::Allocation> allocations_;
  std::vector<stage::CounterRow> rows_;
};

}  // namespace vpfs::sim
