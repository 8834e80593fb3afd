#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "fuse/environment_reader.h"
#include "fuse/process_file.h"

namespace vpfs::fuse {

// Where a process's job is looked for.
enum class JobSource : std::uint8_t {
  // In Slurm's control groups on a node that has them, even if the process is in none of them; else
  // in the environment.
  automatic,
  cgroup,       // in Slurm's control groups only
  environment,  // which every user can set
};

// Finds the job of a process that opens a file. Thread-safe.
class ProcessJobs {
 public:
  struct Options {
    // -o jobid=ID: every file belongs to it.
    std::optional<std::string> always = {};
    JobSource source = JobSource::automatic;
    // In the environment: the first that is set and not empty counts.
    std::vector<std::string> variables = {"SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID"};
    // Where the kernel shows processes and control groups. Tests have directories of their own.
    std::string processes = std::string(kProcesses);
    std::string cgroups = "/sys/fs/cgroup";
    // How long an environment is waited for (EnvironmentReader).
    Duration patience = std::chrono::milliseconds(100);
  };

  ProcessJobs(Options options, const Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        environments_(options_.processes, options_.patience, clock) {}

  // The user and the group are the process's. "": it has none, is gone, or cannot be looked into
  // now. What was found is believed for a tenth of a second. What the environment said is kept for
  // the process, by its number and start, for ten seconds: another program may take its place.
  [[nodiscard]] std::string job_of(pid_t process, uid_t uid, gid_t gid);

  // Where the job of a process would be looked for now: "cgroup", "environment" or "option".
  [[nodiscard]] std::string_view source();

 private:
  // Whether Slurm has control groups on this node. Once seen, they stay: Slurm removes and makes
  // them as jobs come and go.
  [[nodiscard]] bool has_slurm(TimePoint now);
  [[nodiscard]] std::string job_of_environment(pid_t process, uid_t uid, gid_t gid, TimePoint now);
  void keep(pid_t process, std::uint64_t started, std::string_view job, TimePoint now);
  struct Known {
    std::uint64_t started = 0;  // as /proc/PID/stat has it; 0: it is not looked at
    std::string job;
    TimePoint until;
    TimePoint believed_until;
  };

  const Options options_;
  const Clock& clock_;
  EnvironmentReader environments_;
  std::mutex mutex_;  // guards what follows, except has_slurm_
  std::unordered_map<pid_t, Known> known_;
  std::atomic<bool> has_slurm_ = false;
  std::optional<TimePoint> slurm_looked_for_;
};

// The value of the first of `variables` in an environment: "NAME=VALUE" texts, each ended by a NUL.
// "": none, or one that is not a valid job id (empty, longer than 128 bytes, or with a byte that is
// not printable ASCII).
[[nodiscard]] std::string job_in(std::string_view environment,
                                 const std::vector<std::string>& variables);

}  // namespace vpfs::fuse
