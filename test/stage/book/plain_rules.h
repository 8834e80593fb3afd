#pragma once

#include <expected>
#include <vector>

#include "stage/config/rule_text.h"

namespace vpfs::stage {

// Reads rules of a few words, in the place of the whole grammar: weight, rate, iops, burst, min,
// vpfs, mode, for. The condition "wrong" has a mistake in its byte 3.
[[nodiscard]] std::expected<ParsedRule, std::vector<RuleProblem>> plain_rule(const RuleText& text,
                                                                             const Config& context);

// How many rules plain_rule() has read.
[[nodiscard]] int plain_rules_read();

}  // namespace vpfs::stage
