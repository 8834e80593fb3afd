#pragma once

#include <string>

#include "proxy/config.h"

namespace vpfs::proxy {

// Describes in words what a proxy with this configuration does, one indented line per item.
// REQUIRES: parse_config() accepted `config`.
[[nodiscard]] std::string to_summary(const Config& config);

}  // namespace vpfs::proxy
