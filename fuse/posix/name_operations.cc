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

#include "fuse/posix/file_system.h"

namespace vpfs::fuse {
namespace {

// The kernel has not seen an entry whose answer fails, so it will not forget it.
void answer_entry(fuse_req_t request, PosixFileSystem& files, const fuse_entry_param& entry) {
  if (fuse_reply_entry(request, &entry) != 0) files.inodes().forget(files.inode(entry.ino), 1);
}

void answer_look_up(fuse_req_t request, PosixFileSystem& files, fuse_ino_t parent,
                    const char* name) {
  fuse_entry_param entry;
  const int problem = files.look_up(parent, name, entry);
  if (problem != 0) {
    fuse_reply_err(request, problem);
  } else {
    answer_entry(request, files, entry);
  }
}

void answer_result(fuse_req_t request, int result) {
  fuse_reply_err(request, result == 0 ? 0 : errno);
}

// That a name is not there is not kept by the kernel: somebody else may make it below.
void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  answer_look_up(request, file_system_for(request), parent, name);
}

void forget(fuse_req_t request, fuse_ino_t number, std::uint64_t lookups) {
  auto& files = *static_cast<PosixFileSystem*>(fuse_req_userdata(request));
  files.inodes().forget(files.inode(number), lookups);
  fuse_reply_none(request);
}

void forget_multi(fuse_req_t request, std::size_t count, fuse_forget_data* all) {
  auto& files = *static_cast<PosixFileSystem*>(fuse_req_userdata(request));
  for (const fuse_forget_data& each : std::span(all, count)) {
    files.inodes().forget(files.inode(each.ino), each.nlookup);
  }
  fuse_reply_none(request);
}

void mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  PosixFileSystem& files = file_system_for(request);
  use_umask(fuse_req_ctx(request)->umask);
  if (::mknodat(files.inode(parent).descriptor.get(), name, mode, device) != 0) {
    fuse_reply_err(request, errno);
  } else {
    answer_look_up(request, files, parent, name);
  }
}

void mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  PosixFileSystem& files = file_system_for(request);
  use_umask(fuse_req_ctx(request)->umask);
  if (::mkdirat(files.inode(parent).descriptor.get(), name, mode) != 0) {
    fuse_reply_err(request, errno);
  } else {
    answer_look_up(request, files, parent, name);
  }
}

void symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  PosixFileSystem& files = file_system_for(request);
  if (::symlinkat(target, files.inode(parent).descriptor.get(), name) != 0) {
    fuse_reply_err(request, errno);
  } else {
    answer_look_up(request, files, parent, name);
  }
}

void readlink(fuse_req_t request, fuse_ino_t number) {
  PosixFileSystem& files = file_system_for(request);
  std::array<char, PATH_MAX + 1> target = {};
  const ssize_t size =
      ::readlinkat(files.inode(number).descriptor.get(), "", target.data(), target.size() - 1);
  if (size < 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_readlink(request, target.data());
  }
}

void link(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char* name) {
  PosixFileSystem& files = file_system_for(request);
  const std::string path = PosixFileSystem::path_of(files.inode(number));
  if (::linkat(AT_FDCWD, path.c_str(), files.inode(parent).descriptor.get(), name,
               AT_SYMLINK_FOLLOW) != 0) {
    fuse_reply_err(request, errno);
  } else {
    answer_look_up(request, files, parent, name);
  }
}

void unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  PosixFileSystem& files = file_system_for(request);
  answer_result(request, ::unlinkat(files.inode(parent).descriptor.get(), name, 0));
}

void rmdir(fuse_req_t request, fuse_ino_t parent, const char* name) {
  PosixFileSystem& files = file_system_for(request);
  answer_result(request, ::unlinkat(files.inode(parent).descriptor.get(), name, AT_REMOVEDIR));
}

void rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
            const char* new_name, unsigned flags) {
  PosixFileSystem& files = file_system_for(request);
  const int from = files.inode(parent).descriptor.get();
  const int to = files.inode(new_parent).descriptor.get();
  // Not every file system below knows flags.
  const int result = flags == 0 ? ::renameat(from, name, to, new_name)
                                : ::renameat2(from, name, to, new_name, flags);
  answer_result(request, result);
}

}  // namespace

void add_name_operations(fuse_lowlevel_ops& operations) {
  operations.lookup = lookup;
  operations.forget = forget;
  operations.forget_multi = forget_multi;
  operations.mknod = mknod;
  operations.mkdir = mkdir;
  operations.symlink = symlink;
  operations.readlink = readlink;
  operations.link = link;
  operations.unlink = unlink;
  operations.rmdir = rmdir;
  operations.rename = rename;
}

}  // namespace vpfs::fuse
