#pragma once

#include "base/config_reader.h"
#include "stage/config.h"

namespace vpfs::stage {

// The words by which other systems (Lustre's TBF, cgroups, QoS of other servers) know what a key of
// the configuration means, and keys that belong elsewhere in the file: an error about one proposes
// the right key. One function for each kind of mapping.
void suggest_scheduler_words(ConfigReader& reader);
// One virtual PFS; what stands for a priority depends on the policy.
void suggest_share_words(ConfigReader& entry, const Config& config);
void suggest_rule_words(ConfigReader& entry);
void suggest_match_words(ConfigReader& match);

}  // namespace vpfs::stage
