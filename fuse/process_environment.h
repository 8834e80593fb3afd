#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "fuse/process_file.h"

namespace vpfs::fuse {

// The environment that a process was started with: "NAME=VALUE" texts, each ended by a NUL. At most
// its first MiB; "" if the process is gone or must not be looked into.
[[nodiscard]] std::string environment_of(pid_t process, std::string_view processes = kProcesses);

// The value of a variable in it.
[[nodiscard]] std::optional<std::string_view> variable_in(std::string_view environment,
                                                          std::string_view name);

// The nodes of the job that a process belongs to, as SLURM_JOB_NODELIST has them. Empty: nobody
// tells. No file that the process names is opened: it might be a pipe, or lie on the mount itself.
[[nodiscard]] std::vector<std::string> job_nodes_in(std::string_view environment);

}  // namespace vpfs::fuse
