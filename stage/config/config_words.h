#pragma once

#include "base/config_reader.h"
#include "stage/config/config.h"

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

}  // namespace vpfs::stage
