#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"

namespace vpfs::fuse {

// Finds the job of a process that opens a file: in its environment, where batch systems put it.
// Thread-safe.
class ProcessJobs {
 public:
  struct Options {
    // -o jobid=ID: every file belongs to it. Nothing: the variables tell (-o jobid=auto).
    std::optional<std::string> always = {};
    // The first that is set and not empty counts.
    std::vector<std::string> variables = {"SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID"};
  };

  ProcessJobs(Options options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}

  // "": it has none, is gone, or must not be looked into. What was found is kept for the process,
  // by its number and start, for ten seconds: another program may take its place. That the number
  // still is that of the same process is believed for a tenth of a second.
  [[nodiscard]] std::string job_of(pid_t process);

 private:
  struct Known {
    std::uint64_t started = 0;  // as /proc/PID/stat has it
    std::string job;
    TimePoint until;
    TimePoint believed_until;
  };

  const Options options_;
  const Clock& clock_;
  std::mutex mutex_;
  std::unordered_map<pid_t, Known> known_;
};

// The value of the first of `variables` in an environment: "NAME=VALUE" texts, each ended by a NUL.
// "": none, or one that is no good job id (empty, longer than 128 bytes, or with a byte that is not
// printable ASCII).
[[nodiscard]] std::string job_in(std::string_view environment,
                                 const std::vector<std::string>& variables);

}  // namespace vpfs::fuse
