#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "control/gate/stage_gate.h"
#include "stage/history/differences.h"
#include "stage/history/history.h"

namespace vpfs::control {

// Writes the history of a stage. Reads a few rows at a time, so that a request waits a few
// microseconds at most. Belongs to one thread.
class HistoryKeeper {
 public:
  // A second has ended; `rules` is the version of the rules in force. The first call begins the
  // history, and one within a tenth of a second after another does nothing.
  void tick(StageGate& gate, TimePoint now, WallTime wall, std::uint64_t rules);

  [[nodiscard]] const stage::History& history() const { return history_; }

 private:
  void read(StageGate& gate, TimePoint now);

  stage::History history_;
  stage::ReadingDifferences differences_;
  std::vector<stage::HistoryReading> readings_;
  bool has_begun_ = false;
  TimePoint last_ = {};
  WallTime last_wall_ = {};
};

}  // namespace vpfs::control
