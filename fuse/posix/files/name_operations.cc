// Operations on names: look-ups, and everything that makes, moves or removes one.
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <span>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuse/credentials.h"
#include "fuse/posix/files/file_system.h"

namespace vpfs::fuse {
namespace {

// The kernel has not seen an entry whose answer fails, so it will not forget it.
void answer_entry(fuse_req_t request, PosixFileSystem& files, const fuse_entry_param& entry) {
  if (fuse_reply_entry(request, &entry) != 0) files.inodes().forget(files.inode(entry.ino), 1);
}

void answer_look_up(fuse_req_t request, PosixFileSystem& files, fuse_ino_t parent, const char* name,
                    PosixFileSystem::LookUp why) {
  fuse_entry_param entry;
  const int problem = files.look_up(parent, name, fuse_req_ctx(request)->uid, entry, why);
  if (problem != 0) {
    answer_error(request, problem);
  } else {
    answer_entry(request, files, entry);
  }
}

void answer_result(fuse_req_t request, int result) {
  fuse_reply_err(request, result == 0 ? 0 : errno);
}

// The directory in which an object is to be made. Null with errno: also if the kernel could not be
// told of the object then.
ObjectPath path_for_new(fuse_req_t request, PosixFileSystem& files, fuse_ino_t parent) {
  return files.inodes().may_know_more(fuse_req_ctx(request)->uid) ? files.path(parent) : nullptr;
}

// The kernel does not keep that a name is missing: it may be made in the directory below.
void lookup(fuse_req_t request, PosixFileSystem& files, fuse_ino_t parent, const char* name) {
  answer_look_up(request, files, parent, name, PosixFileSystem::LookUp::asked);
}

void forget(fuse_req_t request, fuse_ino_t number, std::uint64_t lookups) {
  PosixFileSystem& files = file_system_of(request);
  files.inodes().forget(files.inode(number), lookups);
  fuse_reply_none(request);
}

void forget_multi(fuse_req_t request, std::size_t count, fuse_forget_data* all) {
  PosixFileSystem& files = file_system_of(request);
  for (const fuse_forget_data& each : std::span(all, count)) {
    files.inodes().forget(files.inode(each.ino), each.nlookup);
  }
  fuse_reply_none(request);
}

void mknod(fuse_req_t request, PosixFileSystem& files, fuse_ino_t parent, const char* name,
           mode_t mode, dev_t device) {
  use_umask(fuse_req_ctx(request)->umask);
  const ObjectPath directory = path_for_new(request, files, parent);
  if (!directory || ::mknodat(directory->get(), name, mode, device) != 0) {
    answer_error(request, errno);
  } else {
    answer_look_up(request, files, parent, name, PosixFileSystem::LookUp::made);
  }
}

void mkdir(fuse_req_t request, PosixFileSystem& files, fuse_ino_t parent, const char* name,
           mode_t mode) {
  use_umask(fuse_req_ctx(request)->umask);
  const ObjectPath directory = path_for_new(request, files, parent);
  if (!directory || ::mkdirat(directory->get(), name, mode) != 0) {
    answer_error(request, errno);
  } else {
    answer_look_up(request, files, parent, name, PosixFileSystem::LookUp::made);
  }
}

void symlink(fuse_req_t request, PosixFileSystem& files, const char* target, fuse_ino_t parent,
             const char* name) {
  const ObjectPath directory = path_for_new(request, files, parent);
  if (!directory || ::symlinkat(target, directory->get(), name) != 0) {
    answer_error(request, errno);
  } else {
    answer_look_up(request, files, parent, name, PosixFileSystem::LookUp::made);
  }
}

void readlink(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number) {
  std::array<char, PATH_MAX + 1> target = {};
  const ObjectPath link = files.path(number);
  const ssize_t size = link ? ::readlinkat(link->get(), "", target.data(), target.size() - 1) : -1;
  if (size < 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_readlink(request, target.data());
  }
}

void link(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, fuse_ino_t parent,
          const char* name) {
  const ObjectPath object = files.path(number);
  const ObjectPath directory = files.path(parent);
  if (!object || !directory ||
      ::linkat(AT_FDCWD, PosixFileSystem::path_to(*object).c_str(), directory->get(), name,
               AT_SYMLINK_FOLLOW) != 0) {
    fuse_reply_err(request, errno);
  } else {
    answer_look_up(request, files, parent, name, PosixFileSystem::LookUp::made);
  }
}

void unlink(fuse_req_t request, PosixFileSystem& files, fuse_ino_t parent, const char* name) {
  const ObjectPath directory = files.path(parent);
  answer_result(request, directory ? ::unlinkat(directory->get(), name, 0) : -1);
}

void rmdir(fuse_req_t request, PosixFileSystem& files, fuse_ino_t parent, const char* name) {
  const ObjectPath directory = files.path(parent);
  answer_result(request, directory ? ::unlinkat(directory->get(), name, AT_REMOVEDIR) : -1);
}

void rename(fuse_req_t request, PosixFileSystem& files, fuse_ino_t parent, const char* name,
            fuse_ino_t new_parent, const char* new_name, unsigned flags) {
  const ObjectPath from = files.path(parent);
  const ObjectPath to = files.path(new_parent);
  if (!from || !to) {
    fuse_reply_err(request, errno);
    return;
  }
  // Not every file system below knows flags.
  const int result = flags == 0 ? ::renameat(from->get(), name, to->get(), new_name)
                                : ::renameat2(from->get(), name, to->get(), new_name, flags);
  answer_result(request, result);
}

}  // namespace

void add_name_operations(fuse_lowlevel_ops& operations) {
  operations.lookup = in_place_of_caller<lookup>;
  operations.forget = forget;
  operations.forget_multi = forget_multi;
  operations.mknod = in_place_of_caller<mknod>;
  operations.mkdir = in_place_of_caller<mkdir>;
  operations.symlink = in_place_of_caller<symlink>;
  operations.readlink = in_place_of_caller<readlink>;
  operations.link = in_place_of_caller<link>;
  operations.unlink = in_place_of_caller<unlink>;
  operations.rmdir = in_place_of_caller<rmdir>;
  operations.rename = in_place_of_caller<rename>;
}

}  // namespace vpfs::fuse
