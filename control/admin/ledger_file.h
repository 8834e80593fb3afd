#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/admin/kept_records.h"
#include "control/insight/spells.h"
#include "control/store/state_store.h"

namespace vpfs::control {

// The spells of the last 24 hours, the oldest first, and in a file if there is one. Those of loans,
// of which there may be many, are kept apart. Belongs to one thread.
class LedgerFile {
 public:
  static constexpr std::size_t kMost = 20'000;  // that are kept, of either

  // Null, or none: it ends with the program.
  LedgerFile() : LedgerFile(nullptr) {}
  explicit LedgerFile(std::unique_ptr<StateStore> store)
      : records_(std::move(store), "control.ledger") {}

  // Reads what an earlier run has kept. `notes` gets what an administrator should know. An error
  // names the place, and changes nothing in the store.
  [[nodiscard]] Result<void> load(WallTime now, std::vector<std::string>& notes);
  // Spells that have ended by now.
  void add(std::vector<insight::Spell> ended, WallTime now);
  // As KeptRecords::hurry().
  void hurry() { records_.hurry(); }

  [[nodiscard]] const std::deque<insight::Spell>& spells() const { return spells_; }
  [[nodiscard]] const std::deque<insight::Spell>& loans() const { return loans_; }

 private:
  void keep(insight::Spell spell);
  void forget(WallTime now);

  KeptRecords records_;
  std::deque<insight::Spell> spells_;
  std::deque<insight::Spell> loans_;
  std::vector<insight::Spell> not_stored_;  // since the disk is full
};

// Spells as a record, and back. An error says what is wrong.
[[nodiscard]] std::string ledger_record(const std::vector<insight::Spell>& spells);
[[nodiscard]] Result<std::vector<insight::Spell>> read_ledger_record(const std::string& record);

}  // namespace vpfs::control
