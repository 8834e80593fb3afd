#pragma once

#include <optional>
#include <string_view>

namespace vpfs::fuse {

// The Slurm job that a process belongs to, from the text of /proc/PID/cgroup, such as
//
//   4:memory:/slurm/uid_1001/job_123/step_0/task_0                          (control groups v1)
//   0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0            (v2)
//
// and with `slurm_NODE` or `NODE_slurmstepd.scope` where several slurmd share a host. Only these
// count, from the root of the hierarchy on: root alone can make them. Users can make groups of any
// name, but only below those that were delegated to them, such as user.slice/.../user@1001.service.
//
// The id is a part of `text`. Nothing: no line has such a group. A line without its end does not
// count.
[[nodiscard]] std::optional<std::string_view> slurm_job_in(std::string_view text);

// Whether it is a name of the group that has all of Slurm's: below the root of a v1 hierarchy, and
// below system.slice of v2.
[[nodiscard]] bool is_slurm_root_v1(std::string_view name);
[[nodiscard]] bool is_slurm_root_v2(std::string_view name);

}  // namespace vpfs::fuse
