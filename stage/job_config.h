#pragma once

#include "base/config_reader.h"
#include "stage/config.h"

namespace vpfs::stage {

// Reads `jobs` and `registered_jobs` at the top of the file.
void read_jobs(ConfigReader& reader, Config& config);

}  // namespace vpfs::stage
