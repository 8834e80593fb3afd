#pragma once

#include <string_view>

#include "base/config_reader.h"
#include "stage/config/config.h"

namespace vpfs::stage {

// The keys that a file beside the main one may have.
inline constexpr std::string_view kKeysOfParts[] = {"virtual_pfs", "rules"};

// Reads the list `rules` at the top of the file. REQUIRES: the scheduler's classes and the virtual
// PFSes are read, since rules name both.
void read_rules(ConfigReader& reader, Config& config);

}  // namespace vpfs::stage
