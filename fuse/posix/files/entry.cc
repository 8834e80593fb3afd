#include "fuse/posix/files/entry.h"

#include <atomic>
#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace vpfs::fuse {
namespace {

// openat2 refuses flags that it does not know, which openat passes over.
constexpr int kOpenFlags = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND |
                           O_NONBLOCK | O_SYNC | O_DSYNC | O_DIRECT | O_LARGEFILE | O_DIRECTORY |
                           O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH;

std::atomic<bool> has_openat2 = true;

// Kernels before 5.6 have no openat2. For a name of one component, O_NOFOLLOW says the same.
int open_resolved(int directory, const char* name, int flags, mode_t mode, std::uint64_t resolve) {
  const int safe = (flags & kOpenFlags) | O_NOFOLLOW | O_CLOEXEC;
  const mode_t created = (flags & O_CREAT) != 0 ? mode & mode_t{07777} : 0;
  if (has_openat2.load(std::memory_order_relaxed)) {
    const open_how how = {.flags = static_cast<std::uint64_t>(safe),
                          .mode = created,
                          .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | resolve};
    const long opened = ::syscall(SYS_openat2, directory, name, &how, sizeof how);
    if (opened >= 0 || errno != ENOSYS) return static_cast<int>(opened);
    has_openat2 = false;
  }
  return ::openat(directory, name, safe, created);
}

// As the kernel knows them: the file system is not asked.
bool read_known_attributes(int opened, struct stat& attributes) {
  struct statx known = {};
  if (::statx(opened, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &known) != 0) {
    return false;
  }
  const auto time = [](const statx_timestamp& at) {
    return timespec{.tv_sec = at.tv_sec, .tv_nsec = static_cast<long>(at.tv_nsec)};
  };
  attributes.st_dev = makedev(known.stx_dev_major, known.stx_dev_minor);
  attributes.st_ino = known.stx_ino;
  attributes.st_mode = known.stx_mode;
  attributes.st_nlink = known.stx_nlink;
  attributes.st_uid = known.stx_uid;
  attributes.st_gid = known.stx_gid;
  attributes.st_rdev = makedev(known.stx_rdev_major, known.stx_rdev_minor);
  attributes.st_size = static_cast<off_t>(known.stx_size);
  attributes.st_blksize = static_cast<blksize_t>(known.stx_blksize);
  attributes.st_blocks = static_cast<blkcnt_t>(known.stx_blocks);
  attributes.st_atim = time(known.stx_atime);
  attributes.st_mtim = time(known.stx_mtime);
  attributes.st_ctim = time(known.stx_ctime);
  return true;
}

}  // namespace

int open_entry(int directory, const char* name, int flags, mode_t mode) {
  return open_resolved(directory, name, flags, mode, 0);
}

FoundEntry find_entry(int directory, const char* name) {
  FoundEntry entry;
  entry.opened = net::Descriptor(open_resolved(directory, name, O_PATH, 0, RESOLVE_NO_XDEV));
  if (!entry && errno == EXDEV) {
    entry.is_mount = true;
    entry.opened = net::Descriptor(open_entry(directory, name, O_PATH, 0));
  }
  if (!entry) return entry;
  const int opened = entry.opened.get();
  const bool read = entry.is_mount ? read_known_attributes(opened, entry.attributes)
                                   : ::fstat(opened, &entry.attributes) == 0;
  if (!read) {
    const int problem = errno;
    entry.opened = {};
    errno = problem;
  }
  return entry;
}

}  // namespace vpfs::fuse
