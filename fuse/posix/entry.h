#pragma once

#include <sys/types.h>

namespace vpfs::fuse {

// Opens what a directory has under a name of one component, or makes it with O_CREAT. No symbolic
// link is followed, the name's own neither (ELOOP), whatever the flags say: the kernel has looked
// at the name already and decided. -1 with errno. The descriptor is closed on exec.
[[nodiscard]] int open_entry(int directory, const char* name, int flags, mode_t mode);

}  // namespace vpfs::fuse
