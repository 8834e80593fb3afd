#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"

namespace vpfs::fuse {

// The supplementary groups of the processes that use the mount, which the kernel does not tell.
// They are read from /proc and believed for a second. Thread-safe.
class ProcessGroups {
 public:
  explicit ProcessGroups(const Clock& clock) : clock_(clock) {}

  // None for a process that is gone or cannot be seen.
  [[nodiscard]] std::vector<gid_t> of(pid_t process);

 private:
  struct Known {
    std::vector<gid_t> groups;
    TimePoint until;
  };

  const Clock& clock_;
  std::mutex mutex_;
  std::unordered_map<pid_t, Known> known_;
};

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
