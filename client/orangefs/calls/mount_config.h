#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "protocols/orangefs/basic_types.h"
#include "protocols/orangefs/types.h"

namespace vpfs::client {

// What a client takes from its servers' fs.conf: everything about one of the file systems there.
struct MountConfig {
  struct Server {
    std::string alias;
    std::string alias_text;  // FsConfig::Alias::text: all its addresses
    std::string host_port;   // of its address in the zone of the mount
    std::vector<orangefs::HandleExtent> meta;
    std::vector<orangefs::HandleExtent> data;
  };

  std::string name;
  orangefs::FsId fs_id = 0;
  orangefs::Handle root = 0;
  std::vector<Server> servers;  // those that hold handles of this file system, in file order
  std::uint64_t flow_buffer_size = orangefs::kDefaultFlowBufferSize;
  std::int64_t strip_size = 65536;
  std::uint32_t default_datafiles = 0;  // 0: all servers with data
  Duration job_timeout = std::chrono::seconds(300);
  Duration flow_timeout = std::chrono::seconds(300);
  std::uint32_t retry_limit = 5;
  Duration retry_delay = std::chrono::milliseconds(2000);

  // The server that holds a handle.
  [[nodiscard]] std::optional<std::size_t> server_of(orangefs::Handle handle) const;
};

// Reads the text that GETCONFIG returns. `scheme` is that of the mount address.
[[nodiscard]] Result<MountConfig> read_mount_config(std::string_view text,
                                                    std::string_view file_system,
                                                    std::string_view scheme);

}  // namespace vpfs::client
