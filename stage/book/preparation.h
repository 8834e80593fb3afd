#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stage/book/rule_book.h"

namespace vpfs::stage {

// Checks one operation against a book and a configuration file, and looks up what it needs.
class BookPreparation {
 public:
  BookPreparation(const BookState& state, RuleParser parse, const Config& file,
                  BookOperation operation, const RuleBook::Known& known);
  [[nodiscard]] std::expected<Change, BookProblem> run();

 private:
  using Problem = std::optional<BookProblem>;
  struct ReadRule {
    RuleText text;  // in its shortest form, without `for=`
    std::optional<WallTime> until;
  };

  Problem check(StartRule start);
  Problem check(ChangeRule change);
  Problem check(const ChangeShare& change);
  Problem check(const StopRule& stop);
  Problem check(const StopShare& stop);
  Problem check(ApplySet apply);
  Problem check(const Confirm& confirm);
  Problem check(const Rollback& rollback);
  Problem check(StartJob start);
  Problem check(const StopJob& stop);
  Problem check(ReplaceSite site);
  Problem check(const SetBypass& bypass);
  Problem check(const Expire& expire);

  // Why a rule may not have this name.
  [[nodiscard]] Problem name_problem(const RuleText& rule, RuleOrigin origin) const;
  // The same of rules of a set.
  [[nodiscard]] Problem names_problem(const std::vector<ApplySet::Rule>& rules) const;
  [[nodiscard]] Problem waits_for_confirmation() const;
  [[nodiscard]] Problem confirmation_problem() const;
  // Another rule sends to the virtual PFS of this rule or share. Warns of those of coordinators.
  [[nodiscard]] Problem is_needed(std::string_view name);
  // Only its coordinator may change the rule.
  [[nodiscard]] static Problem is_of_site(const LiveRule& rule);
  [[nodiscard]] Problem time_problem(const std::optional<WallTime>& until,
                                     std::string_view place) const;
  [[nodiscard]] BookProblem unknown(const std::string& name) const;
  // Every rule of the set must be right, and no other rule may come to grief.
  [[nodiscard]] Problem set_problem(const LiveSet& set) const;
  // No rule may come to grief by what the operation promises. REQUIRES: it can be carried out.
  [[nodiscard]] Problem promise_problem() const;
  // What is not in force now, and what would not be.
  [[nodiscard]] std::vector<Suspended> suspended_now() const;
  [[nodiscard]] std::vector<Suspended> suspended_with(const LiveSet& set,
                                                      const BookState& state) const;
  Problem change_share(const std::string& name, const ChangeRule& change);

  [[nodiscard]] std::expected<ReadRule, BookProblem> read(const RuleText& rule,
                                                          const Config& context) const;
  // Has the virtual PFSes that the words name, if they are declared at all.
  [[nodiscard]] const Config& context_for(const std::vector<std::string>& words);
  [[nodiscard]] bool is_live_target(std::string_view name) const;
  // The virtual PFS of the file that `rule change NAME` and `rule stop NAME` mean.
  [[nodiscard]] std::optional<std::string> file_share(const std::string& name) const;
  [[nodiscard]] const VirtualPfsConfig* declared_by_file(std::string_view name) const;
  void note_ends();
  void find_differences();

  const BookState& state_;
  const LiveSet& set_;
  RuleParser parse_;
  const Config& file_;
  const RuleBook::Known known_;
  Config context_;
  Change change_;
  WallTime at_;
};

}  // namespace vpfs::stage
