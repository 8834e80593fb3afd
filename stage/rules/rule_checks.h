#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/config_reader.h"
#include "stage/rules/rule_types.h"

namespace vpfs::stage {

// For each rule the index of the first earlier rule that matches everything that it would, so that
// it never applies. Only certain cases are found, not rules that several others hide together, nor
// patterns whose wildcards would have to be compared. A shadow rule hides shadow rules alone.
//
// A rule is compared only with those that match an example of what it matches, so the time depends
// on how many rules overlap. REQUIRES: the rules were read without errors.
[[nodiscard]] std::vector<std::optional<std::size_t>> hiding_rules(
    const std::vector<RuleConfig>& rules);

// Warns about each hidden rule; the warning names the rule that hides it. REQUIRES: `rules` are
// those of a file that was read with these errors, and there were none.
void warn_of_hidden_rules(const std::vector<RuleConfig>& rules, ConfigErrors& errors);

}  // namespace vpfs::stage
