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
  // Ends what is due. Returns whether something was.
  bool expire(WallTime now);

  // Why another file cannot be taken on: a live rule does not fit it.
  [[nodiscard]] Result<void> fits(const stage::Config& file) const;
  void take_on(const stage::Config& file);

 private:
  LiveState(std::unique_ptr<StateStore> store, const stage::Config& file);

  void compose(const stage::ParsedRules* read = nullptr);
  [[nodiscard]] Result<void> keep(const std::string& record);
  void keep_small();

  std::unique_ptr<StateStore> store_;
  bool is_behind_ = false;  // the journal lacks something that the book has
  const stage::Config* file_;
  stage::RuleBook book_;
  stage::Composer composer_;
  stage::Composer::Composed composed_;
};

// A problem of the book as the port sends it.
[[nodiscard]] Error to_error(const stage::BookProblem& problem);

}  // namespace vpfs::control
