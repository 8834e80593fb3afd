#include "fuse/credentials.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include <linux/capability.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

namespace vpfs::fuse {
namespace {

using Capabilities = std::uint64_t;  // a bit each

constexpr Capabilities bit(unsigned capability) {
  return Capabilities{1} << capability;
}

// What a thread needs itself, whichever user it acts for: to change users and groups, to read the
// environment of a process that runs with another group, and to come back from a low priority.
constexpr Capabilities kAlways =
    bit(CAP_SETUID) | bit(CAP_SETGID) | bit(CAP_SYS_PTRACE) | bit(CAP_SYS_NICE);
// What root has on the file system below: the kernel takes the first line away and gives it back
// with the user. CAP_SYS_RESOURCE passes quotas and reserved blocks, CAP_SYS_ADMIN shows
// trusted.* attributes, CAP_SETFCAP writes those of programs.
constexpr Capabilities kOfRoot = bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_DAC_READ_SEARCH) |
                                 bit(CAP_FOWNER) | bit(CAP_FSETID) | bit(CAP_MKNOD) |
                                 bit(CAP_LINUX_IMMUTABLE) | bit(CAP_MAC_OVERRIDE) |
                                 bit(CAP_SYS_RESOURCE) | bit(CAP_SYS_ADMIN) | bit(CAP_SETFCAP);

// What the calling thread is now.
struct Self {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups = {};
  Capabilities permitted = 0;
  Capabilities effective = 0;
  bool has_own_mask = false;
  mode_t mask = 0;
};
thread_local Self self;

bool is_root() {
  static const bool root = ::geteuid() == 0;
  return root;
}

struct CapabilitySets {
  Capabilities permitted = 0;
  Capabilities effective = 0;
};

constexpr unsigned kWord = 32;

CapabilitySets capabilities() {
  __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> words = {};
  (void)::syscall(SYS_capget, &head, words.data());
  return {.permitted = words[0].permitted | Capabilities{words[1].permitted} << kWord,
          .effective = words[0].effective | Capabilities{words[1].effective} << kWord};
}

bool set_capabilities(const CapabilitySets& wanted) {
  __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const auto low = [](Capabilities all) { return static_cast<std::uint32_t>(all); };
  const auto high = [](Capabilities all) { return static_cast<std::uint32_t>(all >> kWord); };
  const std::array<__user_cap_data_struct, 2> words = {
      __user_cap_data_struct{
          .effective = low(wanted.effective), .permitted = low(wanted.permitted), .inheritable = 0},
      __user_cap_data_struct{.effective = high(wanted.effective),
                             .permitted = high(wanted.permitted),
                             .inheritable = 0}};
  return ::syscall(SYS_capset, &head, words.data()) == 0;
}

// The calls return what was before, and take an id that is none for a question.
uid_t kernels_uid() {
  return static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1)));
}
gid_t kernels_gid() {
  return static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1)));
}

std::vector<gid_t> kernels_groups() {
  const long count = ::syscall(SYS_getgroups, 0, nullptr);
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(count, 0L)));
  if (count > 0) (void)::syscall(SYS_getgroups, groups.size(), groups.data());
  return groups;
}

bool set_groups(std::vector<gid_t> wanted) {
  if (::syscall(SYS_setgroups, wanted.size(), wanted.data()) != 0) return false;
  self.groups = std::move(wanted);
  return true;
}

bool use_capabilities(Capabilities wanted) {
  wanted &= self.permitted;
  if (self.effective == wanted) return true;
  if (!set_capabilities({.permitted = self.permitted, .effective = wanted})) return false;
  self.effective = wanted;
  return true;
}

// The kernel takes and gives some capabilities with the user, so theirs are set whenever root
// comes or goes.
bool change_user(uid_t uid, gid_t gid) {
  if (self.gid != gid) {
    ::setfsgid(gid);
    self.gid = kernels_gid();
    if (self.gid != gid) return false;
  }
  if (self.uid != uid) {
    const bool changes_root = self.uid == 0 || uid == 0;
    ::setfsuid(uid);
    self.uid = kernels_uid();
    if (changes_root) self.effective = capabilities().effective;
    if (self.uid != uid) return false;
  }
  return use_capabilities(uid == 0 ? kAlways | kOfRoot : kAlways);
}

[[maybe_unused]] bool kernel_agrees() {
  std::vector<gid_t> groups = kernels_groups();
  std::vector<gid_t> believed = self.groups;
  std::ranges::sort(believed);
  std::ranges::sort(groups);
  const CapabilitySets now = capabilities();
  return kernels_uid() == self.uid && kernels_gid() == self.gid && groups == believed &&
         now.permitted == self.permitted && now.effective == self.effective;
}

bool checked(bool done) {
  VPFS_DEBUG_ASSERT(kernel_agrees());
  return done;
}

}  // namespace

// The kernel's own calls: those of the C library would change all threads.
void adopt_own_identity() {
  if (!is_root()) return;
  const Capabilities kept = capabilities().permitted & (kAlways | kOfRoot);
  VPFS_ASSERT(set_capabilities({.permitted = kept, .effective = kept}));
  self.permitted = self.effective = kept;
  // A namespace may forbid to change groups. Then those of the mount stay, and callers that have
  // others are refused.
  if (!set_groups({})) self.groups = kernels_groups();
  self.uid = kernels_uid();
  self.gid = kernels_gid();
  VPFS_ASSERT(checked(change_user(0, ::getegid())));
}

bool become(uid_t uid, gid_t gid) {
  if (!is_root()) return true;
  const bool other = self.uid != uid || self.gid != gid;
  if (other && !self.groups.empty() && !set_groups({})) return false;
  return checked(change_user(uid, gid));
}

bool become(uid_t uid, gid_t gid, pid_t process, ProcessGroups& groups) {
  if (!is_root()) return true;
  // Root may do everything without groups.
  if (uid != 0) {
    std::vector<gid_t> wanted = groups.of(process, uid, gid);
    if (wanted != self.groups && !set_groups(std::move(wanted))) return false;
  }
  return checked(change_user(uid, gid));
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

OwnCapabilities::OwnCapabilities() {
  if (is_root()) (void)use_capabilities(self.permitted);
}

OwnCapabilities::~OwnCapabilities() {
  if (is_root() && self.uid != 0) (void)use_capabilities(kAlways);
}

}  // namespace vpfs::fuse
