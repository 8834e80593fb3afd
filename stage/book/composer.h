#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stage/book/changes.h"
#include "stage/book/live_rules.h"
#include "stage/config/parsed_rules.h"
#include "stage/config/rule_text.h"

namespace vpfs::stage {

// parse_rule(), or what a test has in its place.
using RuleParser = std::expected<ParsedRule, std::vector<RuleProblem>> (*)(const RuleText&,
                                                                           const Config&);

// A live rule or share that is not in force, since it does not fit the configuration file.
struct Suspended {
  std::string name;
  RuleOrigin origin = RuleOrigin::administrator;
  std::string place;  // as of RuleProblem
  std::string text;

  bool operator==(const Suspended&) const = default;
};

// Makes the configuration in force from the file's and a rule book:
//
// - Live rules come before the file's: the administrators' in their order, then jobs'
//   by id, then the coordinator's.
// - A share that administrators changed replaces the file's; the file's rule of that name then has
//   their origin and words. Other shares of theirs are declared beside the file's.
// - A rule with `vpfs=` sends to a virtual PFS of the file, of the administrators' shares, or of a
//   live rule that is not a job's.
// - A registered job takes the place of the file's of the same id; a coordinator's counts if there
//   is no other of its id.
// - A coordinator's rule is not in force while an administrator or a job has one of its name.
// - What does not fit is left out and listed.
//
// It remembers how it read each rule, so that a change costs little more than what it changes.
class Composer {
 public:
  explicit Composer(RuleParser parse) : parse_(parse) {}

  struct Composed {
    Config config;
    std::vector<Suspended> suspended;
  };
  // REQUIRES: `file` is what it was before, or forget() was called. `read`: rules that were read
  // already; may be null.
  [[nodiscard]] Composed compose(const Config& file, const BookState& state,
                                 const ParsedRules* read = nullptr) {
    return compose(file, administrators_of(state), state, read);
  }
  // With another set of the administrators.
  [[nodiscard]] Composed compose(const Config& file, const LiveSet& administrators,
                                 const BookState& state, const ParsedRules* read = nullptr);

  // The configuration of the file is another one.
  void forget() { parsed_.clear(); }
  // Rules that promise something are read again: all of them have to fit together.
  void forget_promises() {
    std::erase_if(parsed_, [](const auto& each) { return has_promise(each.second); });
  }

 private:
  class Work;
  // Keeps each rule, so that its address stays its own.
  using Parsed = std::unordered_map<std::shared_ptr<const LiveRule>, ParsedRule>;

  RuleParser parse_;
  Parsed parsed_;
};

// Those of `after` that were in force `before`, by their names and origins.
[[nodiscard]] std::vector<Suspended> newly_suspended(const std::vector<Suspended>& before,
                                                     const std::vector<Suspended>& after);

// The rule of the file that declares this virtual PFS itself; null: none does.
[[nodiscard]] const RuleConfig* declaring_rule(const Config& file, std::string_view virtual_pfs);

// The configuration as if this virtual PFS was not declared.
[[nodiscard]] Config without(const Config& config, std::string_view virtual_pfs);

// A share with some words changed, and the rule with it that declares the virtual PFS, if any.
struct ChangedShare {
  VirtualPfsConfig share;
  std::optional<RuleConfig> rule;
};
// Words that are not of a share are refused. REQUIRES: the virtual PFS is not in `context`.
[[nodiscard]] std::expected<ChangedShare, std::vector<RuleProblem>> changed_share(
    const VirtualPfsConfig& share, const RuleConfig* declaring,
    const std::vector<std::string>& changes, const Config& context, RuleParser parse);

}  // namespace vpfs::stage
