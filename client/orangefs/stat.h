#pragma once

#include <cstdint>

#include "protocols/orangefs/basic_types.h"

namespace vpfs::client {

struct Stat {
  orangefs::Handle handle = 0;
  orangefs::ObjectType type = orangefs::ObjectType::none;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t permissions = 0;
  std::uint64_t atime = 0;  // seconds since the epoch
  std::uint64_t mtime = 0;
  std::uint64_t ctime = 0;
  std::uint64_t size = 0;  // of a file, or of a symbolic link's target
  std::uint32_t datafiles = 0;
  std::int64_t strip_size = 0;
};

// What an object's attributes say. The size of a file is 0 unless they have it (a stuffed file).
[[nodiscard]] Stat stat_from(orangefs::Handle handle, const orangefs::Attributes& attributes);

}  // namespace vpfs::client
