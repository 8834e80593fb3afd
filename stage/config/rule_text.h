#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "stage/config/config.h"

namespace vpfs::stage {

struct RuleProblem {
  // "rate", "COND:7" (a byte of the condition, from 0), "NAME".
  std::string place;
  std::string text;

  bool operator==(const RuleProblem&) const = default;
};

struct ParsedRule {
  RuleConfig rule;
  // The virtual PFS that the rule declares itself: a rule without `vpfs=` has one of its own name.
  std::optional<VirtualPfsConfig> declares;
  std::optional<Duration> lasts;  // for=
};

// Reads a rule as the command line and the control port have it. `context` has the protocol, the
// policy, the traffic classes, and the declared virtual PFSes, without that which this rule
// declared when it was read before. All problems are found at once.
//
// The name "default" gives no rule: its condition is empty, its words are a share, and `declares`
// is the virtual PFS of what no rule matches. The caller decides whether a request may ask for
// that.
[[nodiscard]] std::expected<ParsedRule, std::vector<RuleProblem>> parse_rule(const RuleText& text,
                                                                             const Config& context);

}  // namespace vpfs::stage
