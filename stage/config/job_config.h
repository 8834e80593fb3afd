#pragma once

#include "base/config_reader.h"
#include "stage/config/config.h"

namespace vpfs::stage {

// Reads `jobs` and `registered_jobs` at the top of the file.
void read_jobs(ConfigReader& reader, Config& config);
// Warns if only registered jobs count and the file has none. REQUIRES: there were no errors.
void warn_of_no_jobs(const Config& config, ConfigErrors& errors);

}  // namespace vpfs::stage
