#pragma once

#include <string>

#include "dataserver/orangefs/handle_ranges.h"
#include "dataserver/orangefs/server_config.h"

namespace vpfs::dataserver {

// The text that GETCONFIG returns, in the syntax of OrangeFS's fs.conf. Every server of a file
// system makes the same text from the same configuration: clients compare them.
[[nodiscard]] std::string fs_config_text(const ServerConfig& config, const HandleRanges& ranges);

}  // namespace vpfs::dataserver
