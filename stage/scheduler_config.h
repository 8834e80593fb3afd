#pragma once

#include "base/config_reader.h"
#include "stage/config.h"

namespace vpfs::stage {

// Reads the mapping `scheduler`: policy, depth, costs, traffic classes and the settings of single
// policies.
void read_scheduler(ConfigReader reader, Config& config, const Config* running);
// Reads the mapping `virtual_pfs` below `reader`. It comes after read_scheduler(), since the words
// of a share depend on the policy. Promises that cannot be kept together are reported.
void read_shares(ConfigReader& reader, Config& config);

}  // namespace vpfs::stage
