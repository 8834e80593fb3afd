#include "fuse/posix/files/file_system.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fuse/mount_point.h"
#include "fuse/posix/files/call_again.h"
#include "fuse/posix/files/entry.h"

namespace vpfs::fuse {
namespace {

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void init(void* owner, fuse_conn_info* connection) {
  ask_for_limits(*connection);
  const auto want = [&](unsigned capability) {
    if ((connection->capable & capability) != 0) connection->want |= capability;
  };
  // Modes come with the caller's mask beside them, so that a default ACL can take its place.
  want(FUSE_CAP_DONT_MASK);
  const auto& files = *static_cast<PosixFileSystem*>(owner);
  if (files.has_acl()) want(FUSE_CAP_POSIX_ACL);
}

// Whether a file system has ACLs of POSIX. One that has none says so of every object. The kernel
// would ask it for the ACLs of each object that a user touches, and take the answer for an error.
bool has_acl_at(const net::Descriptor& root) {
  const std::string path = PosixFileSystem::path_to(root);
  if (::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) >= 0) return true;
  return errno != EOPNOTSUPP && errno != ENOSYS;
}

// Half of the process's descriptors is for pipes, and a part for threads and what the program
// itself has open.
Inodes::Limits limits_for(bool shared) {
  constexpr std::size_t kOwn = 2080;  // four for each of 520 threads
  rlimit limit = {};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  const auto all = static_cast<std::size_t>(limit.rlim_cur);
  const std::size_t half = all / 2;
  Inodes::Limits limits{.descriptors = std::max(half - std::min(half, kOwn), all / 4),
                        .shared = shared};
  limits.paths = std::min(limits.paths, all / 8);
  return limits;
}

}  // namespace

Result<std::unique_ptr<PosixFileSystem>> PosixFileSystem::open(Options options, ProcessJobs& jobs,
                                                               const Clock& clock, Handed* handed) {
  const auto problem = [](const std::string& what) {
    return fail(fmt::format("{}: {}", what, std::generic_category().message(errno)),
                {errno, std::generic_category()});
  };
  net::Descriptor root =
      handed != nullptr
          ? std::move(handed->root)
          : net::Descriptor(::open(options.source.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return problem(options.source);
  // One that runs as root acts for each caller.
  if (::geteuid() != 0 && ::faccessat(AT_FDCWD, options.source.c_str(), X_OK, AT_EACCESS) != 0) {
    return problem(options.source);
  }
  struct stat attributes = {};
  if (::fstat(root.get(), &attributes) != 0) return problem(options.source);
  net::Descriptor descriptors(::open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!descriptors) return problem("/proc/self/fd");
  const bool has_acl = handed != nullptr ? handed->has_acl : options.acl && has_acl_at(root);
  std::unique_ptr<PosixFileSystem> files(new PosixFileSystem(
      std::move(options), std::move(root), attributes, std::move(descriptors), jobs, clock));
  files->has_acl_ = has_acl;
  return files;
}

PosixFileSystem::PosixFileSystem(Options options, net::Descriptor root,
                                 const struct stat& attributes, net::Descriptor descriptors,
                                 ProcessJobs& jobs, const Clock& clock)
    : options_(std::move(options)),
      inodes_(std::move(root), attributes, limits_for(options_.shared)),
      descriptors_(std::move(descriptors)),
      groups_(clock),
      jobs_(jobs) {}

const fuse_lowlevel_ops& PosixFileSystem::operations() {
  static const fuse_lowlevel_ops all = [] {
    fuse_lowlevel_ops table = {};
    table.init = init;
    add_name_operations(table);
    add_file_operations(table);
    add_directory_operations(table);
    add_attribute_operations(table);
    return table;
  }();
  return all;
}

Inode& PosixFileSystem::inode(fuse_ino_t number) {
  return inodes_.at(number);
}

fuse_ino_t PosixFileSystem::number_of(const Inode& inode) {
  return inode.node;
}

int PosixFileSystem::look_up(fuse_ino_t parent, const char* name, uid_t user,
                             fuse_entry_param& entry, LookUp why) {
  const ObjectPath directory = path(parent);
  if (!directory) return errno;
  entry = {};
  entry.attr_timeout = seconds(options_.attribute_timeout);
  entry.entry_timeout = seconds(options_.entry_timeout);
  int problem = 0;
  Inode* found = inodes_.look_up_known(directory->get(), name, entry.attr, problem);
  if (problem != 0) return problem;
  if (found == nullptr) {
    FoundEntry there = find_entry(directory->get(), name);
    if (!there) return errno;
    if (there.is_mount && why == LookUp::listed) return EXDEV;
    entry.attr = there.attributes;
    // Those who want to know more of what is mounted there ask it themselves, without the lock.
    if (there.is_mount) entry.attr_timeout = 0;
    found = inodes_.look_up(std::move(there.opened), entry.attr,
                            {.user = user,
                             .parent = parent,
                             .entry = name,
                             .is_mount = there.is_mount,
                             .is_made = why == LookUp::made});
    if (found == nullptr) return errno;
  }
  entry.ino = number_of(*found);
  number(entry.attr);
  return 0;
}

int PosixFileSystem::enter(int opened, const Inodes::Cause& cause, fuse_entry_param& entry) {
  entry = {};
  entry.attr_timeout = seconds(options_.attribute_timeout);
  entry.entry_timeout = seconds(options_.entry_timeout);
  const std::string name = std::to_string(opened);
  net::Descriptor path(::openat(descriptors_.get(), name.c_str(), O_PATH | O_CLOEXEC));
  if (!path || ::fstat(opened, &entry.attr) != 0) return errno;
  const Inode* const found = inodes_.look_up(std::move(path), entry.attr, cause);
  if (found == nullptr) return errno;
  entry.ino = number_of(*found);
  number(entry.attr);
  return 0;
}

std::string PosixFileSystem::path_to(const net::Descriptor& opened) {
  return fmt::format("/proc/self/fd/{}", opened.get());
}

void PosixFileSystem::number(struct stat& attributes) const {
  const dev_t own = inodes_.root_device();
  if (attributes.st_dev != own) attributes.st_ino ^= (attributes.st_dev + 1) << 40U;
}

// The link in /proc is followed, and nothing behind it: it leads to the object itself.
int PosixFileSystem::open_again(const net::Descriptor& path, int flags) const {
  const std::string name = std::to_string(path.get());
  return ::openat(descriptors_.get(), name.c_str(), (flags & ~O_NOFOLLOW) | O_CLOEXEC);
}

PosixFileSystem& file_system_of(fuse_req_t request) {
  return *static_cast<PosixFileSystem*>(fuse_req_userdata(request));
}

void answer_error(fuse_req_t request, int problem) {
  if (problem != ERESTART) {
    fuse_reply_err(request, problem);
    return;
  }
  CallAgain::ask();
  fuse_reply_none(request);
}

bool take_place_of_caller(fuse_req_t request) {
  const fuse_ctx* const caller = fuse_req_ctx(request);
  if (become(caller->uid, caller->gid, caller->pid, file_system_of(request).groups())) return true;
  fuse_reply_err(request, EACCES);
  return false;
}

}  // namespace vpfs::fuse
