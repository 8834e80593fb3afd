#pragma once

#include "base/config_reader.h"
#include "stage/config/config.h"

namespace vpfs::stage {

// Reads the list `rules` at the top of the file. REQUIRES: the scheduler's classes and the virtual
// PFSes are read, since rules name both.
void read_rules(ConfigReader& reader, Config& config);

}  // namespace vpfs::stage
