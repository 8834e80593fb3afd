#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vpfs::client {

// Targets of a BeeGFS storage server, "beegfs://127.0.0.1:8003/101,102": at least one, each once.
struct StorageAddress {
  std::string host_port;
  std::vector<std::uint16_t> targets;
  bool operator==(const StorageAddress&) const = default;
};

inline constexpr std::string_view kStorageScheme = "beegfs://";

[[nodiscard]] Result<StorageAddress> parse_storage_address(std::string_view text);

}  // namespace vpfs::client
