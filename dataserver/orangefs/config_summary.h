#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dataserver/orangefs/server_config.h"

namespace vpfs::dataserver {

// What servers with this configuration will serve, for people: a line for each thing, indented by
// two. `self` is the server that was asked about, if one was.
// REQUIRES: `config` passed parse_server_config() without errors.
[[nodiscard]] std::string to_summary(const ServerConfig& config, std::optional<std::uint32_t> self);

}  // namespace vpfs::dataserver
