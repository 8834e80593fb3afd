#include "fuse/posix/credentials.h"

#include <utility>
#include <vector>

#include <sched.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vpfs::fuse {
namespace {

// What the calling thread is now.
struct Self {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups = {};
  bool has_own_mask = false;
  mode_t mask = 0;
};
thread_local Self self;

bool is_root() {
  static const bool root = ::geteuid() == 0;
  return root;
}

}  // namespace

// The kernel's own calls: those of the C library would change all threads.
void become(uid_t uid, gid_t gid) {
  if (!is_root()) return;
  if (self.gid != gid) ::setfsgid(gid);
  if (self.uid != uid) ::setfsuid(uid);
  self.gid = gid;
  self.uid = uid;
}

void become(uid_t uid, gid_t gid, pid_t process, ProcessGroups& groups) {
  if (!is_root()) return;
  // Root may do everything without groups.
  if (uid != 0) {
    std::vector<gid_t> wanted = groups.of(process, uid, gid);
    if (wanted != self.groups) {
      (void)::syscall(SYS_setgroups, wanted.size(), wanted.data());
      self.groups = std::move(wanted);
    }
  }
  become(uid, gid);
}

void use_umask(mode_t mask) {
  if (!self.has_own_mask) {
    (void)::unshare(CLONE_FS);
    self.has_own_mask = true;
    self.mask = ::umask(mask);
  }
  if (self.mask != mask) ::umask(mask);
  self.mask = mask;
}

}  // namespace vpfs::fuse
