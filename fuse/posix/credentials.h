#pragma once

#include <sys/types.h>

#include "fuse/process_groups.h"

namespace vpfs::fuse {

// Who the calling thread is towards the file system below. A thread stays what it became until it
// becomes somebody else, so the same caller twice costs nothing. Only root can be others; for
// anybody else these do nothing.
//
// For data: the owner of what is written, quotas, bits that a write clears.
void become(uid_t uid, gid_t gid);
// For names and attributes: with the process's groups too.
void become(uid_t uid, gid_t gid, pid_t process, ProcessGroups& groups);
// The mask of the modes that the calling thread creates, for itself alone.
void use_umask(mode_t mask);

}  // namespace vpfs::fuse
