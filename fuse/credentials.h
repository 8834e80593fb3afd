#pragma once

#include <sys/types.h>

#include "fuse/process_groups.h"

namespace vpfs::fuse {

// What the calling thread is to the file system below: user, groups and capabilities of the thread
// alone, never of the process. A thread keeps them until it takes on others, so requests of
// one caller in a row cost no system call. Only root can act for others; in a mount of another user
// everything here does nothing and succeeds.
//
// A caller other than root gets no capability that widens its rights. Root gets those that the file
// system below may ask for. All others are given up for good (decision 0048 lists them).

// What a serving thread does first. A thread inherits the identity of the thread that started it,
// so nothing is assumed: afterwards the kernel has what is believed here.
void adopt_own_identity();

// The functions below return false if the kernel refuses, because its namespace does not know the
// user or a group. The request must then fail.
//
// For data: the owner of what is written, quotas, bits that a write clears. Without groups.
[[nodiscard]] bool become(uid_t uid, gid_t gid);
// For names and attributes: with the process's groups.
[[nodiscard]] bool become(uid_t uid, gid_t gid, pid_t process, ProcessGroups& groups);
// The mask of the modes that the calling thread creates, for itself alone.
void use_umask(mode_t mask);

// While it lives, the calling thread has the mount's own capabilities besides its identity, for a
// call that no user makes for itself: opening by a handle, pipes beyond the limits of a user.
class OwnCapabilities {
 public:
  OwnCapabilities();
  ~OwnCapabilities();
  OwnCapabilities(const OwnCapabilities&) = delete;
  OwnCapabilities& operator=(const OwnCapabilities&) = delete;
};

}  // namespace vpfs::fuse
