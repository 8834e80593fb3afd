#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "stage/config/rule_text.h"

namespace vpfs::stage {

// Rules as they were read a moment ago, so that one request reads each of its rules once, however
// often it is looked at.
//
// It is for one request alone: the configuration must not change meanwhile, and the names of users
// and hosts may mean something else later.
class ParsedRules {
 public:
  // How this text was read; null: that is not known. Valid until the next add().
  [[nodiscard]] const ParsedRule* find(const RuleText& text) const;
  // Also remembers the text in its shortest form, without `for=`, as a rule book has it. Leaves out
  // a rule with a promise: whether that can be kept depends on all other rules.
  void add(const RuleText& text, const ParsedRule& parsed);
  void clear() { parsed_.clear(); }

 private:
  struct Hash {
    [[nodiscard]] std::size_t operator()(const RuleText& text) const;
  };
  std::unordered_map<RuleText, ParsedRule, Hash> parsed_;
};

// Whether the rule has a promise (`latency`, `finish`), which is kept or not with those of all
// other rules; and whether its text may have one.
[[nodiscard]] bool has_promise(const ParsedRule& parsed);
[[nodiscard]] bool may_promise(const RuleText& rule);

// The configuration without its virtual PFSes, rules and jobs. Other rules are read against it,
// with that virtual PFS alone that they name, so that reading one does not depend on how many there
// are.
[[nodiscard]] Config context_without_names(const Config& config);

}  // namespace vpfs::stage
