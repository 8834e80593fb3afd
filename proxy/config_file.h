#pragma once

#include <string>

#include "base/result.h"

namespace vpfs::proxy {

// The whole text of a file; the error names it.
[[nodiscard]] Result<std::string> read_config_file(const std::string& path);

}  // namespace vpfs::proxy
