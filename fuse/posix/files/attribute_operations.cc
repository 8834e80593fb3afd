// Operations on attributes, plain and extended.
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <linux/xattr.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fuse/credentials.h"
#include "fuse/posix/files/file_system.h"

namespace vpfs::fuse {
namespace {

void answer_attributes(fuse_req_t request, PosixFileSystem& files, const net::Descriptor& object) {
  struct stat attributes = {};
  if (::fstat(object.get(), &attributes) != 0) {
    fuse_reply_err(request, errno);
    return;
  }
  files.number(attributes);
  fuse_reply_attr(request, &attributes,
                  std::chrono::duration<double>(files.options().attribute_timeout).count());
}

void getattr(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number,
             fuse_file_info* /*info*/) {
  const ObjectPath object = files.path(number);
  if (!object) {
    fuse_reply_err(request, errno);
  } else {
    answer_attributes(request, files, *object);
  }
}

int change_mode(const Inode& inode, const net::Descriptor& object, mode_t mode) {
  // Linux has no modes of symbolic links.
  if (inode.type == S_IFLNK) return EOPNOTSUPP;
  const std::string path = PosixFileSystem::path_to(object);
  if (::chmod(path.c_str(), mode) == 0) return 0;
  // A kernel that clears set-user-id bits itself does so in the name of the user that writes, not
  // in that of the owner.
  struct stat now = {};
  if (errno != EPERM || ::stat(path.c_str(), &now) != 0) return errno;
  constexpr mode_t kPermissions = 07777;
  const mode_t cleared = now.st_mode & kPermissions & ~static_cast<mode_t>(S_ISUID | S_ISGID);
  if ((mode & kPermissions) != cleared) return EPERM;
  return become(0, 0) && ::chmod(path.c_str(), mode) == 0 ? 0 : errno;
}

int change_owner(const net::Descriptor& object, const struct stat& wanted, int which) {
  const uid_t uid = (which & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1);
  const gid_t gid = (which & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1);
  return ::fchownat(object.get(), "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0 ? 0
                                                                                          : errno;
}

// A process that has the file open for writing may cut it, whatever its mode says now.
int change_size(PosixFileSystem& files, const net::Descriptor& object, off_t size,
                const fuse_file_info* info) {
  const int result = info != nullptr
                         ? ::ftruncate(files.files().at(info->fh).descriptor.get(), size)
                         : ::truncate(PosixFileSystem::path_to(object).c_str(), size);
  return result == 0 ? 0 : errno;
}

int change_times(const Inode& inode, const net::Descriptor& object, const struct stat& wanted,
                 int which) {
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
  if (::utimensat(object.get(), "", times.data(), AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0) {
    return 0;
  }
  if (errno != EINVAL || inode.type == S_IFLNK) return errno;
  // Kernels before 5.8 want a path.
  const std::string path = PosixFileSystem::path_to(object);
  return ::utimensat(AT_FDCWD, path.c_str(), times.data(), 0) == 0 ? 0 : errno;
}

void setattr(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, struct stat* wanted,
             int which, fuse_file_info* info) {
  const Inode& inode = files.inode(number);
  const ObjectPath path = files.path(number);
  if (!path) {
    fuse_reply_err(request, errno);
    return;
  }
  const net::Descriptor& object = *path;
  int problem = 0;
  // chown(-1, -1) comes without anything: it changes the time of the last change. So does what
  // clears set-user-id bits before a write, which the write below does anyway.
  if (which == 0) (void)change_owner(object, *wanted, which);
  // A new owner clears bits of the mode, so a new mode comes behind it.
  if ((which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
    problem = change_owner(object, *wanted, which);
  }
  if (problem == 0 && (which & FUSE_SET_ATTR_MODE) != 0) {
    problem = change_mode(inode, object, wanted->st_mode);
  }
  if (problem == 0 && (which & FUSE_SET_ATTR_SIZE) != 0) {
    problem = change_size(files, object, wanted->st_size, info);
  }
  if (problem == 0 && (which & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME |
                                FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW)) != 0) {
    problem = change_times(inode, object, *wanted, which);
  }
  if (problem != 0) {
    fuse_reply_err(request, problem);
  } else {
    answer_attributes(request, files, object);
  }
}

// `call(path)` is a call of the system on the object, with -1 and errno if it fails.
template <typename Call>
void answer_call(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, Call call) {
  const ObjectPath object = files.path(number);
  const bool done = object && call(PosixFileSystem::path_to(*object)) == 0;
  fuse_reply_err(request, done ? 0 : errno);
}

void setxattr(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, const char* name,
              const char* value, std::size_t size, int flags) {
  answer_call(request, files, number, [&](const std::string& path) {
    return ::setxattr(path.c_str(), name, value, size, flags);
  });
}

// The capabilities of a program go when a user writes it, cuts it or gives it to another group.
// Then the kernel removes them here in the name of that user, who may not do so below. It has
// refused users who ask for that themselves.
int remove_capabilities(const fuse_ctx& caller, const std::string& path) {
  if (!become(0, 0)) return -1;
  const int result = ::removexattr(path.c_str(), XATTR_NAME_CAPS);
  const int problem = errno;
  (void)become(caller.uid, caller.gid);
  errno = problem;
  return result;
}

void removexattr(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, const char* name) {
  answer_call(request, files, number, [&](const std::string& path) {
    const int result = ::removexattr(path.c_str(), name);
    const bool may_not = result != 0 && errno == EPERM;
    if (!may_not || std::string_view(name) != XATTR_NAME_CAPS) return result;
    return remove_capabilities(*fuse_req_ctx(request), path);
  });
}

// `read(path, into, size)` is a call of the system that gives texts, or with size 0 their size.
template <typename Read>
void answer_texts(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, std::size_t size,
                  Read read) {
  const ObjectPath object = files.path(number);
  std::vector<char> texts(size);
  const ssize_t got = object ? read(PosixFileSystem::path_to(*object), texts.data(), size) : -1;
  if (got < 0) {
    fuse_reply_err(request, errno);
  } else if (size == 0) {
    fuse_reply_xattr(request, static_cast<std::size_t>(got));
  } else {
    fuse_reply_buf(request, texts.data(), static_cast<std::size_t>(got));
  }
}

// The kernel asks for the ACLs of all objects if those of the root can be had. One on a file system
// without any, which is mounted below, simply has none.
bool is_missing_acl(const PosixFileSystem& files, std::string_view name) {
  return errno == EOPNOTSUPP && files.has_acl() && name.starts_with("system.posix_acl_");
}

void getxattr(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, const char* name,
              std::size_t size) {
  answer_texts(request, files, number, size,
               [&](const std::string& path, char* into, std::size_t room) {
                 const ssize_t got = ::getxattr(path.c_str(), name, into, room);
                 if (got < 0 && is_missing_acl(files, name)) errno = ENODATA;
                 return got;
               });
}

void listxattr(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, std::size_t size) {
  answer_texts(request, files, number, size,
               [](const std::string& path, char* into, std::size_t room) {
                 return ::listxattr(path.c_str(), into, room);
               });
}

}  // namespace

void add_attribute_operations(fuse_lowlevel_ops& operations) {
  operations.getattr = in_place_of_caller<getattr>;
  operations.setattr = in_place_of_caller<setattr>;
  operations.setxattr = in_place_of_caller<setxattr>;
  operations.getxattr = in_place_of_caller<getxattr>;
  operations.listxattr = in_place_of_caller<listxattr>;
  operations.removexattr = in_place_of_caller<removexattr>;
}

}  // namespace vpfs::fuse
