#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include "net/descriptor.h"

namespace vpfs::fuse {

// Opens what a directory has under a name of one component, or makes it with O_CREAT. No symbolic
// link is followed, the name's own neither (ELOOP), whatever the flags say: the kernel has looked
// at the name already and decided. -1 with errno. The descriptor is closed on exec.
[[nodiscard]] int open_entry(int directory, const char* name, int flags, mode_t mode);

// An entry of a directory, and what it leads to.
struct FoundEntry {
  net::Descriptor opened = {};  // with O_PATH; -1 with errno: it cannot be opened
  bool is_mount = false;        // something is mounted there, which `opened` is the root of
  struct stat attributes = {};  // its own

  explicit operator bool() const { return static_cast<bool>(opened); }
};
// Finds a name of one component, as open_entry() does. The kernel has the directory locked
// meanwhile, and what is mounted below may hang. So a mounted file system is not asked: its root
// has the attributes that this kernel knows of it, which may be old. Kernels before 5.6 do not tell
// roots from others.
[[nodiscard]] FoundEntry find_entry(int directory, const char* name);

}  // namespace vpfs::fuse
