#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/allocation/cycle_state.h"
#include "control/wire/control.pb.h"

namespace vpfs::coordinator {

// What an aggregator has told its parent on one connection: its jobs as flows, and their counters
// when they were last reported.
class JobReports {
 public:
  // Adds the jobs that are not announced yet to `flows`, and to `report` those whose counters have
  // changed since the last call.
  void add(const allocation::CycleState& state, control::Flows& flows, control::Report& report);

  // The job of that flow; nothing: it was not announced, or it has ended.
  [[nodiscard]] const std::string* find(std::uint32_t flow) const;

 private:
  struct Told {
    bool is_announced = false;
    bool is_live = false;  // as of this call
    std::uint32_t generation = 0;
    std::uint32_t stages = 0;
    std::string name;
    allocation::JobTotals totals;
  };

  std::vector<Told> told_;  // by number
};

}  // namespace vpfs::coordinator
