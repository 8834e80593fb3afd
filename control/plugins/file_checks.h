#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "base/result.h"

namespace vpfs::control {

// A file whose code may be run.
struct TrustedFile {
  std::string path;  // without symbolic links
  // What differs when it is another file, or is written anew.
  ::dev_t device = 0;
  ::ino_t inode = 0;
  std::int64_t changed = 0;  // nanoseconds

  bool operator==(const TrustedFile&) const = default;
};

// Checks that only root and the user of this process can change the file: it and each directory
// above it belong to one of them, and their group and others may not write. A directory with the
// sticky bit, such as /tmp, counts as safe: others cannot replace what is in it.
[[nodiscard]] Result<TrustedFile> check_trusted(const std::string& path);

}  // namespace vpfs::control
