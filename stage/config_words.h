#pragma once

#include <optional>
#include <string_view>

#include "base/config_reader.h"
#include "stage/config.h"

namespace vpfs::stage {

// Each function suggests keys for one kind of mapping. An error about a word of another system
// (Lustre's TBF, cgroups, QoS of other servers), or about a key from elsewhere in the file,
// proposes the right key.
void suggest_scheduler_words(ConfigReader& reader);
// The mapping of one virtual PFS. The key for a priority depends on the policy.
void suggest_share_words(ConfigReader& entry, const Config& config);
void suggest_rule_words(ConfigReader& entry, const Config& config);
// The words of the command line.
void suggest_text_words(ConfigReader& entry, const Config& config);
void suggest_match_words(ConfigReader& match);
// The word of a condition that a user probably means.
[[nodiscard]] std::optional<std::string_view> suggested_match_word(std::string_view word);

}  // namespace vpfs::stage
