#pragma once

#include "dataserver/orangefs/handle_ranges.h"
#include "dataserver/orangefs/server_config.h"
#include "protocols/orangefs/fs_config.h"

namespace vpfs::dataserver {

// What the servers of a file system tell their clients of it.
[[nodiscard]] orangefs::FsConfig fs_config(const ServerConfig& config, const HandleRanges& ranges);

}  // namespace vpfs::dataserver
