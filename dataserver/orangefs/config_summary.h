#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dataserver/orangefs/server_config.h"

namespace vpfs::dataserver {

// Describes what servers with this configuration will serve, in lines indented by two. `self` is
// the server in question, if any. REQUIRES: `config` passed parse_server_config() without errors.
[[nodiscard]] std::string to_summary(const ServerConfig& config, std::optional<std::uint32_t> self);

}  // namespace vpfs::dataserver
