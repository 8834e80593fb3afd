#pragma once

#include "base/config_reader.h"
#include "stage/config/config.h"

namespace vpfs::stage {

// Reads the mapping `scheduler`: policy, depth, costs, traffic classes and the settings of single
// policies.
void read_scheduler(ConfigReader reader, Config& config, const Config* running);

}  // namespace vpfs::stage
