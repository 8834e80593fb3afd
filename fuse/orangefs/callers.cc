#include "fuse/orangefs/callers.h"

#include <cstddef>
#include <memory>

#include "fuse/orangefs/mount_worker.h"

namespace vpfs::fuse::pvfs {
namespace {

constexpr Duration kCallerStays = std::chrono::milliseconds(100);
constexpr std::size_t kMostCallers = 4096;

}  // namespace

client::CallerPtr Callers::of(uid_t uid, gid_t gid, pid_t process) {
  const TimePoint now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(process);
    if (found != known_.end() && now < found->second.until && found->second.caller->uid == uid &&
        found->second.caller->gid == gid) {
      return found->second.caller;
    }
  }
  // /proc may wait for what the process holds, and the process for another worker.
  if (process != 0) MountWorker::current().call_for_help();
  const auto caller = std::make_shared<client::Caller>();
  caller->uid = uid;
  caller->gid = gid;
  caller->virtual_pfs = virtual_pfs_;
  if (process != 0) {
    for (const gid_t group : groups_.of(process, uid, gid)) caller->groups.push_back(group);
    caller->jobid = jobs_.job_of(process, uid, gid);
  }
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostCallers) known_.clear();
  known_.insert_or_assign(process, Known{.caller = caller, .until = now + kCallerStays});
  return caller;
}

}  // namespace vpfs::fuse::pvfs
