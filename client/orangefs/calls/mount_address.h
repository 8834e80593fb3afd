#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace vpfs::client {

// Where a file system is: any one of its servers, and its name. "tcp://127.0.0.1:3334/vpfs".
//
// `scheme` is a BMI method with an optional zone ("tcp", "tcp-px"). A client uses only those
// addresses of servers that are in the zone that it mounted by.
struct MountAddress {
  std::string scheme;
  std::string host_port;
  std::string file_system;
};

[[nodiscard]] Result<MountAddress> parse_mount_address(std::string_view text);

// One address of a server, "tcp-px://127.0.0.1:4334".
struct ServerAddress {
  std::string scheme;
  std::string host_port;
  bool operator==(const ServerAddress&) const = default;
};

[[nodiscard]] Result<ServerAddress> parse_server_address(std::string_view text);

}  // namespace vpfs::client
