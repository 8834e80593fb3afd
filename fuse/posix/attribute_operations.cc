// Operations on attributes, plain and extended.
#include <array>
#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fuse/posix/file_system.h"

namespace vpfs::fuse {
namespace {

void answer_attributes(fuse_req_t request, PosixFileSystem& files, const Inode& inode) {
  struct stat attributes = {};
  if (::fstatat(inode.descriptor.get(), "", &attributes, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) !=
      0) {
    fuse_reply_err(request, errno);
    return;
  }
  files.number(attributes);
  fuse_reply_attr(request, &attributes,
                  std::chrono::duration<double>(files.options().attribute_timeout).count());
}

void getattr(fuse_req_t request, fuse_ino_t number, fuse_file_info* /*info*/) {
  PosixFileSystem& files = file_system_for(request);
  answer_attributes(request, files, files.inode(number));
}

int change_mode(const Inode& inode, mode_t mode) {
  // Linux has no modes of symbolic links.
  if (inode.type == S_IFLNK) return EOPNOTSUPP;
  const std::string path = PosixFileSystem::path_of(inode);
  if (::chmod(path.c_str(), mode) == 0) return 0;
  // A kernel that clears set-user-id bits itself does so in the name of who writes, not of the
  // owner.
  struct stat now = {};
  if (errno != EPERM || ::stat(path.c_str(), &now) != 0) return errno;
  constexpr mode_t kPermissions = 07777;
  const mode_t cleared = now.st_mode & kPermissions & ~static_cast<mode_t>(S_ISUID | S_ISGID);
  if ((mode & kPermissions) != cleared) return EPERM;
  become(0, 0);
  return ::chmod(path.c_str(), mode) == 0 ? 0 : errno;
}

int change_owner(const Inode& inode, const struct stat& wanted, int which) {
  const uid_t uid = (which & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1);
  const gid_t gid = (which & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1);
  return ::fchownat(inode.descriptor.get(), "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0
             ? 0
             : errno;
}

// Who has the file open for writing may cut it, whatever its mode says now.
int change_size(const Inode& inode, off_t size, const fuse_file_info* info) {
  const int result = info != nullptr ? ::ftruncate(OpenFiles::at(info->fh).descriptor.get(), size)
                                     : ::truncate(PosixFileSystem::path_of(inode).c_str(), size);
  return result == 0 ? 0 : errno;
}

int change_times(const Inode& inode, const struct stat& wanted, int which) {
  std::array<timespec, 2> times = {timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                                   timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
  if ((which & FUSE_SET_ATTR_ATIME_NOW) != 0) {
    times[0].tv_nsec = UTIME_NOW;
  } else if ((which & FUSE_SET_ATTR_ATIME) != 0) {
    times[0] = wanted.st_atim;
  }
  if ((which & FUSE_SET_ATTR_MTIME_NOW) != 0) {
    times[1].tv_nsec = UTIME_NOW;
  } else if ((which & FUSE_SET_ATTR_MTIME) != 0) {
    times[1] = wanted.st_mtim;
  }
  if (::utimensat(inode.descriptor.get(), "", times.data(), AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) ==
      0) {
    return 0;
  }
  if (errno != EINVAL || inode.type == S_IFLNK) return errno;
  // Kernels before 5.8 want a path.
  const std::string path = PosixFileSystem::path_of(inode);
  return ::utimensat(AT_FDCWD, path.c_str(), times.data(), 0) == 0 ? 0 : errno;
}

void setattr(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int which,
             fuse_file_info* info) {
  PosixFileSystem& files = file_system_for(request);
  const Inode& inode = files.inode(number);
  int problem = 0;
  // chown(-1, -1) comes without anything: it changes the time of the last change. So does what
  // clears set-user-id bits before a write, which the write below does anyway.
  if (which == 0) (void)change_owner(inode, *wanted, which);
  // A new owner clears bits of the mode, so a new mode comes behind it.
  if ((which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
    problem = change_owner(inode, *wanted, which);
  }
  if (problem == 0 && (which & FUSE_SET_ATTR_MODE) != 0) {
    problem = change_mode(inode, wanted->st_mode);
  }
  if (problem == 0 && (which & FUSE_SET_ATTR_SIZE) != 0) {
    problem = change_size(inode, wanted->st_size, info);
  }
  if (problem == 0 && (which & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME |
                                FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW)) != 0) {
    problem = change_times(inode, *wanted, which);
  }
  if (problem != 0) {
    fuse_reply_err(request, problem);
  } else {
    answer_attributes(request, files, inode);
  }
}

void setxattr(fuse_req_t request, fuse_ino_t number, const char* name, const char* value,
              std::size_t size, int flags) {
  PosixFileSystem& files = file_system_for(request);
  const std::string path = PosixFileSystem::path_of(files.inode(number));
  fuse_reply_err(request, ::setxattr(path.c_str(), name, value, size, flags) == 0 ? 0 : errno);
}

void removexattr(fuse_req_t request, fuse_ino_t number, const char* name) {
  PosixFileSystem& files = file_system_for(request);
  const std::string path = PosixFileSystem::path_of(files.inode(number));
  fuse_reply_err(request, ::removexattr(path.c_str(), name) == 0 ? 0 : errno);
}

// `read(into, size)` is a call of the system that gives texts, or with size 0 their size.
template <typename Read>
void answer_texts(fuse_req_t request, std::size_t size, Read read) {
  std::vector<char> texts(size);
  const ssize_t got = read(texts.data(), size);
  if (got < 0) {
    fuse_reply_err(request, errno);
  } else if (size == 0) {
    fuse_reply_xattr(request, static_cast<std::size_t>(got));
  } else {
    fuse_reply_buf(request, texts.data(), static_cast<std::size_t>(got));
  }
}

void getxattr(fuse_req_t request, fuse_ino_t number, const char* name, std::size_t size) {
  PosixFileSystem& files = file_system_for(request);
  const std::string path = PosixFileSystem::path_of(files.inode(number));
  answer_texts(request, size, [&](char* into, std::size_t room) {
    return ::getxattr(path.c_str(), name, into, room);
  });
}

void listxattr(fuse_req_t request, fuse_ino_t number, std::size_t size) {
  PosixFileSystem& files = file_system_for(request);
  const std::string path = PosixFileSystem::path_of(files.inode(number));
  answer_texts(request, size,
               [&](char* into, std::size_t room) { return ::listxattr(path.c_str(), into, room); });
}

}  // namespace

void add_attribute_operations(fuse_lowlevel_ops& operations) {
  operations.getattr = getattr;
  operations.setattr = setattr;
  operations.setxattr = setxattr;
  operations.getxattr = getxattr;
  operations.listxattr = listxattr;
  operations.removexattr = removexattr;
}

}  // namespace vpfs::fuse
