// Operations on files except for their data (see IoGate).
#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/system_clock.h"
#include "fuse/credentials.h"
#include "fuse/direct_io.h"
#include "fuse/posix/files/entry.h"
#include "fuse/posix/files/file_system.h"

namespace vpfs::fuse {
namespace {

// The kernel's flag of a file that is opened to be run (its __FMODE_EXEC).
constexpr int kOpenToRun = 0x20;

OpenFilePtr make_file(PosixFileSystem& files, const fuse_ctx& caller, OpenPlace place,
                      net::Descriptor descriptor) {
  auto file = std::make_shared<OpenFile>();
  file->place = std::move(place);
  file->descriptor = std::move(descriptor);
  file->opener = {.uid = caller.uid,
                  .gid = caller.gid,
                  .jobid = files.jobs().job_of(caller.pid, caller.uid, caller.gid)};
  return file;
}

// Whether what the kernel keeps of the file is still what the file has: close-to-open consistency
// with others that write it. Writes through this mount count as changes too: nothing tells them
// from others that came in between. A change that is younger than two seconds may be followed by
// one with the same time.
bool is_unchanged(Inodes& inodes, Inode& inode, const struct stat& now, WallTime clock) {
  const bool settled = now.st_mtim.tv_sec + 2 < clock.time_since_epoch().count();
  return inodes.is_unchanged(inode, now, settled);
}

void prepare(PosixFileSystem& files, fuse_file_info& info, OpenFilePtr file, Inode& inode) {
  struct stat now = {};
  const bool known = ::fstat(file->descriptor.get(), &now) == 0;
  info.keep_cache = known && is_unchanged(files.inodes(), inode, now, wall_clock_now()) ? 1U : 0U;
  info.direct_io = files.has_direct_io() && (info.flags & O_DIRECT) != 0 ? 1U : 0U;
  file->passes_cache = (info.flags & O_DIRECT) != 0;
  file->inode = files.number_of(inode);
  file->use = files.file_users().begin(files.number_of(inode), file->opener.uid);
  file->has_id_bits = known && (now.st_mode & (S_ISUID | S_ISGID)) != 0;
  info.fh = files.files().add(std::move(file));
}

// A program that its user may run but not read. The kernel opens it to run it, and lets no process
// read it.
int open_to_run(PosixFileSystem& files, const net::Descriptor& path, const fuse_ctx& caller,
                int flags) {
  const std::string name = PosixFileSystem::path_to(path);
  if (::faccessat(AT_FDCWD, name.c_str(), X_OK, AT_EACCESS) != 0 || !become(0, 0)) return -1;
  net::Descriptor opened(files.open_again(path, flags));
  const int problem = errno;
  const bool back = become(caller.uid, caller.gid);
  errno = problem;
  return back ? opened.release() : -1;
}

// The descriptor neither appends nor gives up where a process of the caller would wait. A file
// that can only be appended to keeps the former.
void serve(const net::Descriptor& opened, int flags) {
  if (::fcntl(opened.get(), F_SETFL, flags & ~O_APPEND) == 0) return;
  (void)::fcntl(opened.get(), F_SETFL, flags);
}

// A file that the kernel does not know of. Another object may have taken the name: a pipe without
// an end, or a file with a lease. To open these may take long, and the kernel keeps the directory
// locked meanwhile. So such an open does not wait: with ESTALE the kernel looks the name up again.
int make(int directory, const char* name, int flags, mode_t mode) {
  // A user's mount would open with its own rights what has come under the name since the kernel
  // looked. The kernel checks the caller's when it looks again.
  const bool takes_new_only = ::geteuid() != 0 && (flags & O_EXCL) == 0;
  const int more = O_CREAT | O_NONBLOCK | (takes_new_only ? O_EXCL : 0);
  net::Descriptor opened(open_entry(directory, name, flags | more, mode));
  struct stat its = {};
  const bool would_wait =
      !opened && (errno == ENXIO || errno == EWOULDBLOCK || (takes_new_only && errno == EEXIST));
  if (would_wait || (opened && ::fstat(opened.get(), &its) == 0 && !S_ISREG(its.st_mode))) {
    errno = ESTALE;
    return -1;
  }
  if (opened) serve(opened, flags);
  return opened.release();
}

// A file that the kernel knows. Another process's lease on it keeps an open waiting for as long as
// its user likes: up to 45 s, and again. So the open does not wait where the caller would. It has
// ERESTART, and asks the holder to give the lease up.
int open_known(PosixFileSystem& files, const Inode& inode, const net::Descriptor& path,
               const fuse_ctx& caller, int flags) {
  const int more = S_ISREG(inode.type) ? O_NONBLOCK : 0;
  net::Descriptor opened(files.open_again(path, flags | more));
  if (!opened && errno == EACCES && (flags & kOpenToRun) != 0) {
    opened = net::Descriptor(open_to_run(files, path, caller, O_RDONLY | more));
  }
  if (opened) serve(opened, flags);
  if (!opened && errno == EWOULDBLOCK && (more & ~flags) != 0) errno = ERESTART;
  return opened.release();
}

void open(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, fuse_file_info* info) {
  const fuse_ctx& caller = *fuse_req_ctx(request);
  OpenPlace place(files.inodes(), caller.uid, Inodes::Patience::enough);
  const ObjectPath path = place ? files.path(number) : nullptr;
  net::Descriptor opened(path ? open_known(files, files.inode(number), *path, caller, info->flags)
                              : -1);
  if (!opened) {
    answer_error(request, errno);
    return;
  }
  prepare(files, *info, make_file(files, caller, std::move(place), std::move(opened)),
          files.inode(number));
  // Its size may have changed below, and reads end at the size that the kernel knows.
  if (info->keep_cache == 0) files.attributes_changed(number);
  const ParallelWrites parallel(info->direct_io != 0);
  if (fuse_reply_open(request, info) != 0) files.files().close(info->fh);
}

void create(fuse_req_t request, PosixFileSystem& files, fuse_ino_t parent, const char* name,
            mode_t mode, fuse_file_info* info) {
  const fuse_ctx& caller = *fuse_req_ctx(request);
  use_umask(caller.umask);
  OpenPlace place(files.inodes(), caller.uid, Inodes::Patience::brief);
  const bool may = place && files.inodes().may_know_more(caller.uid);
  const ObjectPath directory = may ? files.path(parent) : nullptr;
  net::Descriptor opened(directory ? make(directory->get(), name, info->flags, mode) : -1);
  fuse_entry_param entry = {};
  const int problem =
      opened ? files.enter(opened.get(),
                           {.user = caller.uid, .parent = parent, .entry = name, .is_made = true},
                           entry)
             : errno;
  if (problem != 0) {
    answer_error(request, problem);
    return;
  }
  Inode& inode = files.inode(entry.ino);
  prepare(files, *info, make_file(files, caller, std::move(place), std::move(opened)), inode);
  const ParallelWrites parallel(info->direct_io != 0);
  if (fuse_reply_create(request, &entry, info) == 0) return;
  files.files().close(info->fh);
  files.inodes().forget(inode, 1);
}

// The file below says now what it could not write.
void flush(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* info) {
  const int another = ::dup(file_system_of(request).files().at(info->fh).descriptor.get());
  fuse_reply_err(request, another >= 0 && ::close(another) == 0 ? 0 : errno);
}

void release(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* info) {
  file_system_of(request).files().close(info->fh);
  fuse_reply_err(request, 0);
}

void fsync(fuse_req_t request, fuse_ino_t /*number*/, int only_data, fuse_file_info* info) {
  const int descriptor = file_system_of(request).files().at(info->fh).descriptor.get();
  const int result = only_data != 0 ? ::fdatasync(descriptor) : ::fsync(descriptor);
  fuse_reply_err(request, result == 0 ? 0 : errno);
}

void fallocate(fuse_req_t request, PosixFileSystem& files, fuse_ino_t /*number*/, int mode,
               off_t offset, off_t length, fuse_file_info* info) {
  const int result = ::fallocate(files.files().at(info->fh).descriptor.get(), mode, offset, length);
  fuse_reply_err(request, result == 0 ? 0 : errno);
}

void lseek(fuse_req_t request, fuse_ino_t /*number*/, off_t offset, int whence,
           fuse_file_info* info) {
  const off_t found =
      ::lseek(file_system_of(request).files().at(info->fh).descriptor.get(), offset, whence);
  if (found < 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_lseek(request, found);
  }
}

void copy_file_range(fuse_req_t request, PosixFileSystem& files, fuse_ino_t /*from*/,
                     off_t from_offset, fuse_file_info* from, fuse_ino_t /*to*/, off_t to_offset,
                     fuse_file_info* to, std::size_t size, int flags) {
  const ssize_t copied =
      ::copy_file_range(files.files().at(from->fh).descriptor.get(), &from_offset,
                        files.files().at(to->fh).descriptor.get(), &to_offset,
                        std::min(size, kLargestCopy), static_cast<unsigned>(flags));
  if (copied < 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_write(request, static_cast<std::size_t>(copied));
  }
}

void statfs(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number) {
  struct statvfs status = {};
  const ObjectPath object = files.path(number);
  if (!object || ::fstatvfs(object->get(), &status) != 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_statfs(request, &status);
  }
}

}  // namespace

void add_file_operations(fuse_lowlevel_ops& operations) {
  operations.open = in_place_of_caller<open>;
  operations.create = in_place_of_caller<create>;
  operations.flush = flush;
  operations.release = release;
  operations.fsync = fsync;
  operations.fallocate = in_place_of_caller<fallocate>;
  operations.lseek = lseek;
  operations.copy_file_range = in_place_of_caller<copy_file_range>;
  operations.statfs = in_place_of_caller<statfs>;
}

}  // namespace vpfs::fuse
