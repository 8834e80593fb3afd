#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "control/gate/stage_gate.h"
#include "control/wire/control.pb.h"
#include "stage/cap_time.h"

namespace vpfs::control {

// What a coordinator was told on one connection: which flows it knows, and their counters when they
// were last reported. A flow is a virtual PFS; its number on the wire is that of the virtual PFS.
// Belongs to the connection.
class FlowReports {
 public:
  // Adds the flows that are not announced yet, or with another weight, to `flows`, and to `report`
  // those whose counters have changed since the last call. Cost: a comparison for each virtual PFS.
  void add(StageGate& gate, TimePoint now, Flows& flows, Report& report);

  // The virtual PFS that a flow stands for; nothing: it was not announced, or it has ended.
  [[nodiscard]] std::optional<stage::VirtualPfsId> find(std::uint32_t flow) const;

 private:
  struct Told {
    bool announced = false;
    std::uint32_t generation = 0;
    std::uint64_t arrived = 0;  // requests, as the following three
    std::uint64_t sent = 0;
    std::uint64_t done = 0;
    std::uint64_t queued = 0;
    stage::CapTime limited;
    Duration present = {};
    std::uint8_t weights = 0;
  };

  void announce(StageGate& gate, TimePoint now, Flows& flows);

  std::vector<Told> told_;  // by number
  std::vector<stage::CounterRow> rows_;
  std::vector<stage::VirtualPfsId> new_;
};

}  // namespace vpfs::control
