#include "fuse/posix/credentials.h"

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vpfs::fuse {
namespace {

constexpr Duration kBelieved = std::chrono::seconds(1);
constexpr std::size_t kMostKnown = 4096;

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

std::vector<gid_t> read_groups(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  constexpr std::string_view kGroups = "Groups:";
  std::vector<gid_t> groups;
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kGroups)) continue;
    const char* at = line.data() + kGroups.size();
    const char* const end = line.data() + line.size();
    while (at < end) {
      gid_t group = 0;
      const auto [next, error] = std::from_chars(at, end, group);
      if (error == std::errc()) groups.push_back(group);
      at = next == at ? at + 1 : next;
    }
    break;
  }
  return groups;
}

}  // namespace

std::vector<gid_t> ProcessGroups::of(pid_t process) {
  const TimePoint now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(process);
    if (found != known_.end() && now < found->second.until) return found->second.groups;
  }
  std::vector<gid_t> groups = read_groups(process);
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  known_[process] = {.groups = groups, .until = now + kBelieved};
  return groups;
}

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
    std::vector<gid_t> wanted = groups.of(process);
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
