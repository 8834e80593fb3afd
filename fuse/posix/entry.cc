#include "fuse/posix/entry.h"

#include <atomic>
#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vpfs::fuse {
namespace {

// openat2 refuses flags that it does not know, which openat passes over.
constexpr int kOpenFlags = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND |
                           O_NONBLOCK | O_SYNC | O_DSYNC | O_DIRECT | O_LARGEFILE | O_DIRECTORY |
                           O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH;

}  // namespace

// Kernels before 5.6 have no openat2. For a name of one component, O_NOFOLLOW says the same.
int open_entry(int directory, const char* name, int flags, mode_t mode) {
  static std::atomic<bool> has_openat2 = true;
  const int safe = (flags & kOpenFlags) | O_NOFOLLOW | O_CLOEXEC;
  const mode_t created = (flags & O_CREAT) != 0 ? mode & mode_t{07777} : 0;
  if (has_openat2.load(std::memory_order_relaxed)) {
    const open_how how = {.flags = static_cast<std::uint64_t>(safe),
                          .mode = created,
                          .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    const long opened = ::syscall(SYS_openat2, directory, name, &how, sizeof how);
    if (opened >= 0 || errno != ENOSYS) return static_cast<int>(opened);
    has_openat2 = false;
  }
  return ::openat(directory, name, safe, created);
}

}  // namespace vpfs::fuse
