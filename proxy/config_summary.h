#pragma once

#include <string>

#include "proxy/config.h"

namespace vpfs::proxy {

// What a proxy with this configuration will do, for people: a line for each thing, indented by two.
// REQUIRES: `config` passed parse_config() without errors.
[[nodiscard]] std::string to_summary(const Config& config);

}  // namespace vpfs::proxy
