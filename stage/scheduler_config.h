#pragma once

#include "base/config_reader.h"
#include "stage/config.h"

namespace vpfs::stage {

// The mapping `scheduler`: policy, depth, costs, traffic classes and what single policies need.
void read_scheduler(ConfigReader reader, Config& config, const Config* running);
// The mapping `virtual_pfs` below `reader`; after read_scheduler(), since what a share may say
// depends on the policy. Promises that cannot be kept together are reported.
void read_shares(ConfigReader& reader, Config& config);

}  // namespace vpfs::stage
