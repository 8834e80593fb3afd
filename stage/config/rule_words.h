#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "stage/config/config.h"

// What an entry of `rules` in the file and a rule of the command line have in common: the mapping
// of their words.
namespace vpfs::stage {

// Reads all words of a rule but its name and its conditions, and sets their canonical form in
// rule.text.words. REQUIRES: rule.name and rule.any_of are set.
// `is_named`: the name is the administrator's.
//
// Returns the virtual PFS that the rule declares: a rule without `virtual_pfs` (or `vpfs`) has one
// of its own name. Reports under "name" what is wrong with that.
[[nodiscard]] std::optional<VirtualPfsConfig> read_rule_words(ConfigReader& entry,
                                                              const Config& context, bool is_named,
                                                              RuleConfig& rule);

// The words of such a mapping in their canonical form and order, one of which stands for each word
// of either spelling.
[[nodiscard]] std::vector<std::string> canonical_words(ConfigReader& entry, const Config& context);

// Checks a name that an administrator gives a rule. Nothing: it is good.
[[nodiscard]] std::optional<std::string> rule_name_problem(const std::string& name);

// A word of the command line, as an example, in the canonical order. Flags have no value.
struct RuleWord {
  std::string_view key;
  std::string_view example;
  std::string_view other = {};  // key of the file for the same

  [[nodiscard]] bool is_flag() const { return example.empty(); }
};
[[nodiscard]] std::span<const RuleWord> rule_words();
// The one with that key, in either spelling; nullptr: there is none.
[[nodiscard]] const RuleWord* find_rule_word(std::string_view key);

}  // namespace vpfs::stage
