#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/config.h"

namespace vpfs::proxy {

// Describes in words what a proxy with this configuration does, one indented line per item.
// REQUIRES: parse_config() accepted `config`.
[[nodiscard]] std::string to_summary(const Config& config);

// The same in a few lines, for the log of a proxy of that version that starts.
[[nodiscard]] std::vector<std::string> start_lines(const Config& config, std::string_view version);

}  // namespace vpfs::proxy
