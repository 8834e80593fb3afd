#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "control/admin/history_file.h"
#include "control/admin/ledger_file.h"
#include "control/gate/stage_gate.h"
#include "control/insight/entitlement_watch.h"
#include "control/insight/lag_history.h"
#include "control/insight/lag_watch.h"
#include "control/insight/spells.h"
#include "stage/history/differences.h"
#include "stage/history/history.h"

namespace vpfs::control {

// Writes the history of a stage, and its ledger. Reads a few rows at a time, so that a request
// waits a few microseconds at most. Belongs to one thread.
class HistoryKeeper {
 public:
  // With what an earlier run has kept, and where the minutes are to be kept.
  struct Kept {
    std::unique_ptr<stage::History> history = std::make_unique<stage::History>();
    HistoryFile file;
    LedgerFile ledger;
  };
  explicit HistoryKeeper(Kept kept) : kept_(std::move(kept)) {}

  // A second has ended; `rules` is the version of the rules in force, and `config` is in force. The
  // first call begins the history, and one within a tenth of a second after another does nothing.
  void tick(StageGate& gate, TimePoint now, WallTime wall, std::uint64_t rules,
            const stage::Config& config);

  // The program ends: keeps what there is of the last minute.
  void finish();

  [[nodiscard]] const stage::History& history() const { return *kept_.history; }
  [[nodiscard]] const insight::LagHistory& lags() const { return lag_history_; }
  [[nodiscard]] std::uint64_t lag_faults() const { return lags_.faults(); }
  [[nodiscard]] const insight::EntitlementWatch& entitlements() const { return entitlements_; }
  // Spells that have ended, and those that go on.
  [[nodiscard]] const LedgerFile& ledger() const { return kept_.ledger; }
  [[nodiscard]] std::vector<insight::Spell> open_spells() const { return spells_.open(); }

 private:
  void read(StageGate& gate, TimePoint now);
  void judge(StageGate& gate, TimePoint now, const stage::Config& config);
  void entitle(StageGate& gate, TimePoint now, std::span<const stage::Activity> activities);

  Kept kept_;
  stage::ReadingDifferences differences_;
  std::vector<stage::HistoryReading> readings_;
  insight::LagWatch lags_;
  insight::LagHistory lag_history_;
  insight::EntitlementWatch entitlements_;
  insight::SpellWatch spells_;
  std::uint64_t last_depth_ = 0;
  bool has_begun_ = false;
  TimePoint last_ = {};
  WallTime last_wall_ = {};
};

}  // namespace vpfs::control
