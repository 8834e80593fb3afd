#pragma once

#include "base/config_reader.h"
#include "proxy/config.h"

namespace vpfs::proxy {

// Reads `jobs` and `registered_jobs` at the top of the file. REQUIRES: config.protocol is read.
void read_jobs(ConfigReader& reader, Config& config);

}  // namespace vpfs::proxy
