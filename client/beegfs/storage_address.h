#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vpfs::client {

// One target of a BeeGFS storage server, "beegfs://127.0.0.1:8003/101".
struct StorageAddress {
  std::string host_port;
  std::uint16_t target = 0;
  bool operator==(const StorageAddress&) const = default;
};

inline constexpr std::string_view kStorageScheme = "beegfs://";

[[nodiscard]] Result<StorageAddress> parse_storage_address(std::string_view text);

}  // namespace vpfs::client
