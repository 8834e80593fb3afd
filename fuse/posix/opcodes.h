#pragma once

#include <cstdint>

#include <linux/fuse.h>

// Kinds of requests, by the numbers that the kernel has for operations.
namespace vpfs::fuse {

// Requests on names and attributes that wait their turn where the configuration says so. Those that
// let something go never do.
[[nodiscard]] inline bool may_be_scheduled(std::uint32_t opcode) {
  switch (opcode) {
    case FUSE_LOOKUP:
    case FUSE_GETATTR:
    case FUSE_SETATTR:
    case FUSE_READLINK:
    case FUSE_SYMLINK:
    case FUSE_MKNOD:
    case FUSE_MKDIR:
    case FUSE_UNLINK:
    case FUSE_RMDIR:
    case FUSE_RENAME:
    case FUSE_RENAME2:
    case FUSE_LINK:
    case FUSE_OPEN:
    case FUSE_CREATE:
    case FUSE_STATFS:
    case FUSE_SETXATTR:
    case FUSE_GETXATTR:
    case FUSE_LISTXATTR:
    case FUSE_REMOVEXATTR:
    case FUSE_OPENDIR:
    case FUSE_READDIR:
    case FUSE_READDIRPLUS:
    case FUSE_FALLOCATE:
      return true;
    default:
      return false;
  }
}

// These only let something go, and have no answer.
[[nodiscard]] inline bool never_waits(std::uint32_t opcode) {
  return opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET || opcode == FUSE_DESTROY ||
         opcode == FUSE_NOTIFY_REPLY;
}

// These write what is known already, and keep no lock of a directory meanwhile.
[[nodiscard]] inline bool synchronizes(std::uint32_t opcode) {
  return opcode == FUSE_FSYNC || opcode == FUSE_FSYNCDIR || opcode == FUSE_SYNCFS;
}

}  // namespace vpfs::fuse
