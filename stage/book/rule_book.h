#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "stage/book/changes.h"
#include "stage/book/composer.h"
#include "stage/book/live_rules.h"
#include "stage/book/operation.h"
#include "stage/book/problem.h"
#include "stage/book/rule_difference.h"
#include "stage/config/parsed_rules.h"

namespace vpfs::stage {

// What an operation would do.
struct Change {
  // What is journaled and committed: the operation asked for, with all that had to be looked up.
  BookOperation operation;
  std::string record;                   // the operation for the journal
  std::vector<Difference> differences;  // of the administrators' set
  std::vector<std::string> warnings;    // also what has ended by itself
};

// The live rules, registered jobs and all else that is changed while a stage runs.
//
// A change is prepared, which only looks; journaled by the owner; and committed. Replaying the
// records gives the same book.
//
// Rules and shares of administrators are one set, and each change of it is a version of the
// history:
//
// - Their rules, the newest first, as with Lustre; `apply` orders them as its file. A name belongs
//   to one rule only, whether live or of the file, so that `rule change NAME` and `rule stop NAME`
//   mean one thing.
// - Shares that they changed. `rule change NAME` with the name of a file's rule, of a virtual PFS
//   of the file, or `default`, changes the share of that virtual PFS for as long as `rule stop
//   NAME` does not give back what the file says. A file's rule itself, and `default`, cannot be
//   stopped.
//
// Rules of jobs ("job:ID") can be changed and stopped too, but are in no version: a rollback leaves
// them alone.
//
// Rules and jobs of a coordinator's site come as a whole, and are changed at the coordinator alone.
// One that does not fit, for instance because its name is taken here, is kept but is not in force.
//
// While a set waits for confirmation nothing else of the administrators' can change, since it would
// be lost with the set.
class RuleBook {
 public:
  static constexpr std::size_t kMostRules = 10'000;  // of the administrators
  static constexpr std::size_t kMostJobs = 100'000;

  explicit RuleBook(RuleParser parse) : parse_(parse) {}

  // What spares prepare() work; all may be null.
  struct Known {
    const Composer* composer = nullptr;                 // has composed this book and the file
    const std::vector<Suspended>* suspended = nullptr;  // what that left out
    ParsedRules* read = nullptr;                        // gets what else is read
  };
  // Changes nothing. `operation.at` is now. The configuration of the file is not kept.
  [[nodiscard]] std::expected<Change, BookProblem> prepare(BookOperation operation,
                                                           const Config& file,
                                                           const Known& known) const;
  [[nodiscard]] std::expected<Change, BookProblem> prepare(BookOperation operation,
                                                           const Config& file) const {
    return prepare(std::move(operation), file, Known());
  }
  // REQUIRES: prepare() made it, and nothing was committed since.
  void commit(const BookOperation& operation);

  // Ends what is due. Commit it before any other operation, at a start right after the replay.
  [[nodiscard]] std::optional<BookOperation> expire(WallTime now) const;
  // When expire() will have something to do.
  [[nodiscard]] std::optional<WallTime> next_deadline() const;

  // Carries out a record of the journal. The error says what is wrong in one line, and the book is
  // as it was.
  [[nodiscard]] std::expected<void, std::string> replay(std::string_view record);
  // One record that stands for all before it.
  [[nodiscard]] std::string snapshot() const;

  [[nodiscard]] const BookState& state() const { return state_; }
  // The versions whose changes are known, oldest first.
  [[nodiscard]] std::span<const HistoryEntry> history() const;
  // What this version changed. REQUIRES: it is in history().
  [[nodiscard]] std::vector<Difference> differences_of(std::uint64_t version) const;

 private:
  RuleParser parse_;
  BookState state_;
};

}  // namespace vpfs::stage
