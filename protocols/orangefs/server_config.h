#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "protocols/orangefs/types.h"

namespace vpfs::orangefs {

// What a proxy takes from a server's configuration, the fs.conf text that GETCONFIG returns.
struct ServerConfig {
  std::optional<Duration> client_job_timeout;  // ClientJobBMITimeoutSecs, where it is above zero
  std::vector<FsId> file_systems;              // the ID of each <FileSystem>, in file order
};

// Skips what it does not know or cannot read: the text is the server's own.
[[nodiscard]] ServerConfig parse_server_config(std::string_view text);

}  // namespace vpfs::orangefs
