#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "control/admin/kept_records.h"
#include "stage/history/history.h"

namespace vpfs::control {

// Keeps the minutes of a history over restarts. A record has a few minutes as JSON; the store is
// made smaller now and then, by what the history has. Belongs to one thread.
class HistoryFile {
 public:
  // Null, or none: the history ends with the program.
  HistoryFile() : HistoryFile(nullptr) {}
  explicit HistoryFile(std::unique_ptr<StateStore> store)
      : records_(std::move(store), "control.history") {}

  // Restores what is not older than a day. `notes` gets what an administrator should know. An error
  // names the place, and changes nothing in the store.
  [[nodiscard]] Result<void> load(stage::History& history, WallTime now,
                                  std::vector<std::string>& notes);
  // Stores the minutes that have ended since the last call. What cannot be stored is tried again
  // after some calls; the log says so once.
  void keep(const stage::History& history);
  // As KeptRecords::hurry().
  void hurry() { records_.hurry(); }

 private:
  KeptRecords records_;
  std::uint64_t kept_ = 0;  // of History::minutes_ended()
};

// Takes on the minutes of a record, as HistoryFile::load() does.
[[nodiscard]] Result<void> restore_history(stage::History& history, const std::string& record);

// The last minutes of a history as a record, and back. An error says what is wrong.
[[nodiscard]] std::string history_record(const stage::History& history, std::uint64_t minutes);
[[nodiscard]] Result<std::vector<stage::History::Minute>> read_history_record(
    const std::string& record);

}  // namespace vpfs::control
