#pragma once

#include <string>

#include "control/wire/control.pb.h"

// Replies about rules and jobs as text.
namespace vpfs::ctl {

[[nodiscard]] std::string rule_table(const control::RuleReply& reply);
// One line for each difference: "+ added", "- removed", "~ changed" with both, "> moved".
[[nodiscard]] std::string difference_text(const control::RuleReply& reply);
[[nodiscard]] std::string history_text(const control::RuleReply& reply);
[[nodiscard]] std::string job_table(const control::JobReply& reply);

// What a rule's line says beside its fields: what a shadow rule would have held, which rule hides
// it, why it is not in force.
[[nodiscard]] std::string rule_note(const control::RuleState& rule);

}  // namespace vpfs::ctl
