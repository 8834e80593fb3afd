#pragma once

#include <string>

#include "base/result.h"

namespace vpfs {

// The whole text of a configuration file. The error names the file and says which it is: not there,
// a directory, not allowed to be read, without any text, or too large to be a configuration.
[[nodiscard]] Result<std::string> read_config_file(const std::string& path);

}  // namespace vpfs
