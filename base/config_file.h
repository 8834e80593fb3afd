#pragma once

#include <string>

#include "base/result.h"

namespace vpfs {

// The whole text of a configuration file. The error names the file and its problem: missing, a
// directory, unreadable, empty, or too large for a configuration.
[[nodiscard]] Result<std::string> read_config_file(const std::string& path);

}  // namespace vpfs
