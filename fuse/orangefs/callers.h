#pragma once

#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include <sys/types.h>

#include "base/clock.h"
#include "client/orangefs/calls/caller.h"
#include "fuse/process_groups.h"
#include "fuse/process_jobs.h"

namespace vpfs::fuse::pvfs {

// The callers of requests: what the kernel tells of a process, with its groups and its job, which
// are looked up in /proc. What was found is believed for a tenth of a second. Thread-safe.
class Callers {
 public:
  // All outlive it.
  Callers(std::string virtual_pfs, ProcessGroups& groups, ProcessJobs& jobs, const Clock& clock)
      : virtual_pfs_(std::move(virtual_pfs)), groups_(groups), jobs_(jobs), clock_(clock) {}

  // `process` 0: the kernel itself.
  [[nodiscard]] client::CallerPtr of(uid_t uid, gid_t gid, pid_t process);

 private:
  struct Known {
    client::CallerPtr caller;
    TimePoint until;
  };

  const std::string virtual_pfs_;
  ProcessGroups& groups_;
  ProcessJobs& jobs_;
  const Clock& clock_;
  std::mutex mutex_;
  std::unordered_map<pid_t, Known> known_;
};

}  // namespace vpfs::fuse::pvfs
