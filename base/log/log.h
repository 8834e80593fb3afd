#pragma once

#include <string>

#include <spdlog/spdlog.h>

#include "base/result.h"

namespace vpfs {

inline constexpr const char* kJournalSocket = "/run/systemd/journal/socket";

// Where a program's log goes: "stderr", "journal" (that of systemd), or the path of a file.
//
// Lines have time, program and level; entries of the journal have the level as their priority. A
// file or journal that cannot be written is replaced by standard error until it can, with one line
// that says so. Warnings and errors that repeat are counted (see RepeatFilter).
//
// `level` is one of trace, debug, info, warn, error, off. Fails if the level is unknown, or if
// there is no journal here. Call once, from main.
[[nodiscard]] Result<void> set_up_logging(const std::string& program, const std::string& level,
                                          const std::string& target = "stderr");

// An error unless the level is one of those.
[[nodiscard]] Result<void> check_log_level(const std::string& level);

// Changes the level; ignores unknown levels.
void set_log_level(const std::string& level);

// Continues with another target. An error leaves the log where it is.
[[nodiscard]] Result<void> set_log_target(const std::string& target);

// Opens the log file anew, after it was renamed. Does nothing for other targets.
void reopen_log();

// Logs what a caller has asked for and waits for. It is written even if it repeats.
void log_answer(spdlog::level::level_enum level, const std::string& text);

// What a message is about: fields of its entry in the journal, by which `journalctl` selects. In
// other logs the text alone says it.
struct LogSubject {
  std::string rule = {};  // VPFS_RULE
  std::string job = {};   // JOBID
};
void log_about(const LogSubject& subject, spdlog::level::level_enum level, const std::string& text);

// VPFS_NAME of each entry from now on.
void set_log_name(const std::string& name);

// Whether there is a journal to send entries to, as a socket at this path.
[[nodiscard]] Result<void> check_journal(const std::string& socket = kJournalSocket);

}  // namespace vpfs
