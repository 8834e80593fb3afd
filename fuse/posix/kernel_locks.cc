#include "fuse/posix/kernel_locks.h"

namespace vpfs::fuse {

KernelLocks KernelLocks::of(const fuse_in_header& head, std::span<const std::byte> message,
                            bool is_directory) {
  KernelLocks locks = {.objects = {head.nodeid, 0}, .kept = true};
  switch (head.opcode) {
    case FUSE_LINK:
      locks.objects[1] = body_of<fuse_link_in>(message).oldnodeid;
      break;
    case FUSE_RENAME:
      locks.objects[1] = body_of<fuse_rename_in>(message).newdir;
      break;
    case FUSE_RENAME2:
      locks.objects[1] = body_of<fuse_rename2_in>(message).newdir;
      break;
    case FUSE_LOOKUP:
      locks.asks = true;
      break;
    case FUSE_GETATTR:
    case FUSE_GETXATTR:
      locks.kept = is_directory;
      locks.asks = true;
      break;
    case FUSE_OPEN:
    case FUSE_OPENDIR:
    case FUSE_READLINK:
    case FUSE_STATFS:
    case FUSE_LISTXATTR:
      locks.kept = false;
      break;
    default:
      break;
  }
  if (!locks.kept && !is_directory) locks.objects = {};
  return locks;
}

}  // namespace vpfs::fuse
