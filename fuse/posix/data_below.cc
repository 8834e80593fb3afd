#include "fuse/posix/data_below.h"

#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace vpfs::fuse {
namespace {

// Descriptors below do not append (serve(), file_operations.cc), since mapped pages and writes
// after a change of the flags have their offsets. A process's write that appends says so itself.
ssize_t write_once(int descriptor, std::span<std::byte> from, std::uint64_t offset, int how) {
  const auto at = static_cast<off_t>(offset);
  if (how == 0) return ::pwrite(descriptor, from.data(), from.size(), at);
  const iovec part = {.iov_base = from.data(), .iov_len = from.size()};
  return ::pwritev2(descriptor, &part, 1, at, how);
}

void end_direct_io(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags >= 0) (void)::fcntl(descriptor, F_SETFL, flags & ~O_DIRECT);
}

// Whether a call that failed is to be made again. Another thread may have ended direct I/O just
// now, so the flags do not tell; once is enough.
bool should_try_again(const IoRequest& request, int descriptor, bool& ended_direct_io) {
  if (errno == EINTR) return true;
  if (errno != EINVAL || request.is_direct || ended_direct_io) return false;
  ended_direct_io = true;
  end_direct_io(descriptor);
  return true;
}

}  // namespace

bool is_direct(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_DIRECT) != 0;
}

int syncs_of(std::uint32_t flags) {
  if ((flags & O_DIRECT) == 0) return 0;
  return (flags & O_SYNC) == O_SYNC ? RWF_SYNC : (flags & O_DSYNC) != 0 ? RWF_DSYNC : 0;
}

// The kernel takes a short answer for the end of the file, so only the end makes one.
int read_below(IoRequest& request, std::span<std::byte> into) {
  const int descriptor = request.file->descriptor.get();
  bool ended_direct_io = false;
  while (request.moved < into.size()) {
    const ssize_t got =
        ::pread(descriptor, into.data() + request.moved, into.size() - request.moved,
                static_cast<off_t>(request.offset + request.moved));
    if (got == 0) break;
    if (got < 0 && should_try_again(request, descriptor, ended_direct_io)) continue;
    // A direct read that was short is not aligned any more; nothing takes it for the end.
    if (got < 0) return request.is_direct && request.moved > 0 ? 0 : errno;
    request.moved += static_cast<std::uint64_t>(got);
  }
  return 0;
}

int write_below(IoRequest& request, std::span<std::byte> from) {
  const int descriptor = request.file->descriptor.get();
  const int how = request.syncs | (request.appends ? RWF_APPEND : 0);
  bool ended_direct_io = false;
  while (request.moved < from.size()) {
    const ssize_t put =
        write_once(descriptor, from.subspan(request.moved), request.offset + request.moved, how);
    if (put < 0 && should_try_again(request, descriptor, ended_direct_io)) continue;
    // The kernel takes all pages of its cache for written unless there is an error.
    if (put <= 0 && request.is_of_cache) return put < 0 ? errno : EIO;
    if (put < 0 && request.moved == 0) return errno;
    if (put <= 0) break;
    request.moved += static_cast<std::uint64_t>(put);
  }
  return 0;
}

}  // namespace vpfs::fuse
