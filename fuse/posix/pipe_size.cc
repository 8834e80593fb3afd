#include "fuse/posix/pipe_size.h"

#include <cerrno>

#include <fcntl.h>

#include "fuse/credentials.h"

namespace vpfs::fuse {

std::size_t set_pipe_size(int pipe, std::size_t wanted) {
  int size = ::fcntl(pipe, F_SETPIPE_SZ, static_cast<int>(wanted));
  if (size < 0 && errno == EPERM) {
    const OwnCapabilities own;
    size = ::fcntl(pipe, F_SETPIPE_SZ, static_cast<int>(wanted));
  }
  if (size < 0) size = ::fcntl(pipe, F_GETPIPE_SZ);
  return size < 0 ? 0 : static_cast<std::size_t>(size);
}

}  // namespace vpfs::fuse
