#pragma once

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

  // None for a process that is gone or cannot be seen. With another user or group than before it is
  // looked at again: a daemon that becomes a user changes all of them.
  [[nodiscard]] std::vector<gid_t> of(pid_t process, uid_t uid, gid_t gid);

 private:
  struct Known {
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;
    TimePoint until;
  };

  const Clock& clock_;
  std::mutex mutex_;
  std::unordered_map<pid_t, Known> known_;
};

}  // namespace vpfs::fuse
