#pragma once

#include <cstdint>
#include <cstring>

#include "fuse/message.h"
#include "fuse/posix/io_request.h"

namespace vpfs::fuse {

// Whether a request of the kernel changes what the mount knows: objects and what is open. Such a
// one must have ended before another process takes over. Others may end in this one.
[[nodiscard]] inline bool changes_what_is_known(std::uint32_t opcode) {
  switch (opcode) {
    case FUSE_READ:
    case FUSE_WRITE:
    case FUSE_GETATTR:
    case FUSE_SETATTR:
    case FUSE_READLINK:
    case FUSE_UNLINK:
    case FUSE_RMDIR:
    case FUSE_RENAME:
    case FUSE_RENAME2:
    case FUSE_STATFS:
    case FUSE_FLUSH:
    case FUSE_FSYNC:
    case FUSE_FSYNCDIR:
    case FUSE_SYNCFS:
    case FUSE_FALLOCATE:
    case FUSE_LSEEK:
    case FUSE_COPY_FILE_RANGE:
    case FUSE_SETXATTR:
    case FUSE_GETXATTR:
    case FUSE_LISTXATTR:
    case FUSE_REMOVEXATTR:
      return false;
    default:
      return true;
  }
}
[[nodiscard]] inline bool changes_what_is_known(const IoRequest& request) {
  if (request.message.empty()) return false;
  fuse_in_header head;
  std::memcpy(&head, request.message.data(), sizeof head);
  return changes_what_is_known(head.opcode);
}

}  // namespace vpfs::fuse
