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

}  // namespace vpfs::fuse
