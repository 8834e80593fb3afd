#include "control/host/live.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log/log.h"
#include "base/system_clock.h"
#include "control/host/handed_book.h"
#include "control/store/journal.h"

namespace vpfs::control {

namespace {

std::unexpected<vpfs::Error> problem(std::string_view key, const vpfs::Error& error) {
  return fail(fmt::format("{}: {}", key, error.message), error.code);
}

// Null: there is no such file.
Result<std::unique_ptr<StateStore>> open(const std::string& path, std::string_view key,
                                         FileCalls& calls) {
  if (path.empty()) return nullptr;
  auto journal = Journal::open(path, calls);
  if (!journal) return problem(key, journal.error());
  return std::move(*journal);
}

// What is only told must not keep a data server's proxy from starting.
std::string left_alone(std::string_view key, const vpfs::Error& error) {
  return fmt::format("{}: {}; until then nothing is written to it, and a restart forgets", key,
                     error.message);
}

bool is_same_journal(const std::string& one, std::string_view other) {
  std::error_code missing;
  return std::filesystem::equivalent(one, other, missing);
}

}  // namespace

Result<Live> Live::load(std::shared_ptr<const HostConfig> file, const Handed* handed) {
  Live live;
  live.file = std::move(file);
  live.calls = std::make_unique<KeptLocks>(handed == nullptr ? nullptr : &handed->inherited);
  std::vector<std::string> notes;
  const HostConfig& config = *live.file;
  auto journal = open(config.journal, "control.journal", *live.calls);
  VPFS_TRY(journal);
  if (handed != nullptr && !is_same_journal(config.journal, handed->offered.text("journal"))) {
    std::string book(handed->offered.text("book"));
    if (!book.empty()) {
      *journal = std::make_unique<HandedBook>(std::move(book), std::move(*journal));
    }
  }
  // What is due ends with the first tick. Until then the journal may still be the other's.
  const WallTime due = handed == nullptr ? wall_clock_now() : WallTime();
  auto state = LiveState::load(std::move(*journal), config, due, notes);
  if (!state) return problem("control.journal", state.error());
  live.state = std::move(*state);
  auto history = open(config.history, "control.history", *live.calls);
  VPFS_TRY(history);
  live.history.file = HistoryFile(std::move(*history));
  if (const auto read = live.history.file.load(*live.history.history, wall_clock_now(), notes);
      !read) {
    notes.push_back(left_alone("control.history", read.error()));
    live.history = {};
  }
  if (handed != nullptr && config.history.empty()) {
    const std::string record(handed->offered.text("history"));
    if (!record.empty()) {
      if (const auto read = restore_history(*live.history.history, record); !read) {
        return problem("control.history", read.error());
      }
    }
  }
  auto ledger = open(config.ledger, "control.ledger", *live.calls);
  VPFS_TRY(ledger);
  live.history.ledger = LedgerFile(std::move(*ledger));
  if (const auto read = live.history.ledger.load(wall_clock_now(), notes); !read) {
    notes.push_back(left_alone("control.ledger", read.error()));
    live.history.ledger = {};
  }
  for (const std::string& note : notes) log_answer(spdlog::level::warn, note);
  live.calls->forget_inherited();
  return live;
}

}  // namespace vpfs::control
