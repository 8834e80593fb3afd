#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "fuse/environment_reader.h"
#include "fuse/layout/layout.h"
#include "fuse/process_file.h"

namespace vpfs::fuse::pvfs {

// Finds the data servers on the nodes of a process's job, as SLURM_JOB_NODELIST has them in its
// environment. What a list says is kept for the other processes of the job, and what was found for
// a process is believed for a tenth of a second. A list that is wrong or beyond its bounds gets a
// line in the log. Thread-safe.
class JobServers {
 public:
  // For each server whether it is on a node of the job. Null: the nodes are unknown.
  using Answer = std::shared_ptr<const std::vector<bool>>;

  // Both outlive it.
  JobServers(const LayoutServers& servers, const Clock& clock)
      : servers_(servers),
        clock_(clock),
        environments_(std::string(kProcesses), kPatience, clock) {}

  // Those of a process of that user. One that cannot be looked into in time has none.
  [[nodiscard]] Answer of(pid_t process, uid_t uid, gid_t gid);
  // What the list says. `process` is for the log.
  [[nodiscard]] Answer of_list(std::string_view list, pid_t process);

 private:
  static constexpr Duration kPatience = std::chrono::milliseconds(100);

  struct Known {
    Answer answer;
    TimePoint until;
  };

  const LayoutServers& servers_;
  const Clock& clock_;
  EnvironmentReader environments_;
  std::mutex mutex_;
  std::unordered_map<pid_t, Known> processes_;
  std::unordered_map<std::string, Answer> lists_;
  std::size_t list_bytes_ = 0;  // of the texts
};

}  // namespace vpfs::fuse::pvfs
