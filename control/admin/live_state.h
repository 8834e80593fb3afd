#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/store/state_store.h"
#include "control/wire/control.pb.h"
#include "stage/book/composer.h"
#include "stage/book/rule_book.h"

namespace vpfs::control {

// The rule book with its journal, and the configuration in force that follows from it and the
// configuration of the file. Belongs to one thread.
class LiveState {
 public:
  // Replays the journal, and ends what became due while the program did not run. `notes` gets what
  // an administrator should know. `store`: null if live rules end with the program. `file` outlives
  // the state, or is replaced by take_on().
  [[nodiscard]] static Result<std::unique_ptr<LiveState>> load(std::unique_ptr<StateStore> store,
                                                               const stage::Config& file,
                                                               WallTime now,
                                                               std::vector<std::string>& notes);
  // The same from records that the owner has loaded, and keeps from then on: see commit(). What
  // became due meanwhile has ended in the book alone, which is_behind() tells.
  [[nodiscard]] static Result<std::unique_ptr<LiveState>> replay(const StateStore::Loaded& loaded,
                                                                 const stage::Config& file,
                                                                 WallTime now,
                                                                 std::vector<std::string>& notes);

  [[nodiscard]] const stage::Config& file() const { return *file_; }
  [[nodiscard]] const stage::RuleBook& book() const { return book_; }
  [[nodiscard]] const stage::Composer::Composed& composed() const { return composed_; }

  // What an operation would do; changes nothing. `read`: rules that this request has read already,
  // and what it reads now; may be null.
  [[nodiscard]] std::expected<stage::Change, Error> prepare(
      stage::BookOperation operation, stage::ParsedRules* read = nullptr) const;
  // Journals a prepared change and carries it out. An error changes nothing.
  [[nodiscard]] std::expected<void, Error> carry_out(const stage::Change& change,
                                                     const stage::ParsedRules* read = nullptr);
  // Ends what is due. Returns whether something was. Nothing is in a state that was replayed.
  bool expire(WallTime now);

  // For owners that keep the records by themselves, of a state that was replayed. REQUIRES: the
  // record of the operation is kept, or replaced by one of the whole book later; it was prepared,
  // or was due(), and nothing was committed since.
  void commit(const stage::BookOperation& operation, const stage::ParsedRules* read = nullptr);
  // The records lack something that the book has.
  [[nodiscard]] bool is_behind() const { return is_behind_; }
  // The journal has all of the book, and is where the next start looks for it.
  [[nodiscard]] bool is_kept() const {
    return store_ != nullptr && !is_behind_ && store_->is_in_place();
  }
  // Writes the book if it is not kept. If that fails, the next change tries again, and so does the
  // next call.
  void catch_up();
  // What ends by itself by now; nothing: nothing is due.
  [[nodiscard]] std::optional<stage::BookOperation> due(WallTime now) const {
    return book_.expire(now);
  }

  // Why another file cannot be taken on: a live rule does not fit it.
  [[nodiscard]] Result<void> fits(const stage::Config& file) const;
  void take_on(const stage::Config& file);

 private:
  LiveState(std::unique_ptr<StateStore> store, const stage::Config& file);

  [[nodiscard]] Result<void> take(const StateStore::Loaded& loaded);
  void begin(WallTime now, std::vector<std::string>& notes);
  void compose(const stage::ParsedRules* read = nullptr);
  [[nodiscard]] Result<void> keep(const std::string& record);
  void keep_small();

  std::unique_ptr<StateStore> store_;
  bool owner_keeps_ = false;
  bool is_behind_ = false;  // the journal lacks something that the book has
  const stage::Config* file_;
  stage::RuleBook book_;
  stage::Composer composer_;
  stage::Composer::Composed composed_;
};

// A line of the log.
[[nodiscard]] std::string note_of(const stage::Suspended& suspended);
// A problem of the book as the port sends it.
[[nodiscard]] Error to_error(const stage::BookProblem& problem);

}  // namespace vpfs::control
