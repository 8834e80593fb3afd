#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "protocols/orangefs/basic_types.h"

namespace vpfs::client {

// RFC 1321. Only to place names in distributed directories as OrangeFS does; not for security.
[[nodiscard]] std::array<std::byte, 16> md5(std::span<const std::byte> text);

// Which of a directory's dirdata objects holds the entry `name` (docs/wire-orangefs.md: the bucket
// of a name). The directory has at least one.
[[nodiscard]] orangefs::Handle dirdata_of(const orangefs::DistributedDirectory& directory,
                                          std::string_view name);

}  // namespace vpfs::client
