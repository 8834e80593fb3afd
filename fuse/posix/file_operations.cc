// Operations on files, but for their data (see IoGate).
#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/system_clock.h"
#include "fuse/direct_io.h"
#include "fuse/posix/credentials.h"
#include "fuse/posix/file_system.h"

namespace vpfs::fuse {
namespace {

// The largest copy within one request, so that a share can be kept.
constexpr std::size_t kLargestCopy = std::size_t{16} << 20;

// The kernel's flag of a file that is opened to be run (its __FMODE_EXEC).
constexpr int kOpenToRun = 0x20;

OpenFilePtr make_file(PosixFileSystem& files, const fuse_ctx& caller, Descriptor descriptor) {
  auto file = std::make_shared<OpenFile>();
  file->descriptor = std::move(descriptor);
  file->opener = {.uid = caller.uid, .gid = caller.gid, .jobid = files.jobs().job_of(caller.pid)};
  return file;
}

// Whether what the kernel keeps of the file is still what the file has: close-to-open consistency
// with whoever else writes it. Writes through this mount count as changes too: nothing tells them
// from others that came in between. A change that is younger than two seconds may be followed by
// one with the same time.
bool is_unchanged(Inode& inode, const struct stat& now, WallTime clock) {
  const std::lock_guard lock(inode.seen_mutex);
  const bool same = inode.seen_size == now.st_size &&
                    inode.seen_changed.tv_sec == now.st_mtim.tv_sec &&
                    inode.seen_changed.tv_nsec == now.st_mtim.tv_nsec;
  const bool settled = now.st_mtim.tv_sec + 2 < clock.time_since_epoch().count();
  inode.seen_size = settled ? now.st_size : -1;
  inode.seen_changed = now.st_mtim;
  return same;
}

void prepare(PosixFileSystem& files, fuse_file_info& info, OpenFilePtr file, Inode& inode) {
  struct stat now = {};
  const bool known = ::fstat(file->descriptor.get(), &now) == 0;
  info.keep_cache = known && is_unchanged(inode, now, wall_clock_now()) ? 1U : 0U;
  info.direct_io = files.has_direct_io() && (info.flags & O_DIRECT) != 0 ? 1U : 0U;
  file->has_id_bits = known && (now.st_mode & (S_ISUID | S_ISGID)) != 0;
  info.fh = files.files().add(std::move(file));
}

// A program that its user may run but not read. The kernel, which opens it to run it, lets nobody
// read it.
int open_to_run(PosixFileSystem& files, const Inode& inode, const fuse_ctx& caller) {
  const std::string path = PosixFileSystem::path_of(inode);
  if (::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0) return -1;
  become(0, 0);
  const int opened = files.open_again(inode, O_RDONLY);
  const int problem = errno;
  become(caller.uid, caller.gid);
  errno = problem;
  return opened;
}

void open(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  PosixFileSystem& files = file_system_for(request);
  Inode& inode = files.inode(number);
  Descriptor opened(files.open_again(inode, info->flags));
  if (!opened && errno == EACCES && (info->flags & kOpenToRun) != 0) {
    opened = Descriptor(open_to_run(files, inode, *fuse_req_ctx(request)));
  }
  if (!opened) {
    fuse_reply_err(request, errno);
    return;
  }
  prepare(files, *info, make_file(files, *fuse_req_ctx(request), std::move(opened)), inode);
  const ParallelWrites parallel(info->direct_io != 0);
  if (fuse_reply_open(request, info) != 0) files.files().close(info->fh);
}

void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
            fuse_file_info* info) {
  PosixFileSystem& files = file_system_for(request);
  const fuse_ctx& caller = *fuse_req_ctx(request);
  use_umask(caller.umask);
  const int flags = (info->flags & ~O_NOFOLLOW) | O_CREAT | O_CLOEXEC;
  Descriptor opened(::openat(files.inode(parent).descriptor.get(), name, flags, mode));
  fuse_entry_param entry = {};
  const int problem = opened ? files.enter(opened.get(), entry) : errno;
  if (problem != 0) {
    fuse_reply_err(request, problem);
    return;
  }
  Inode& inode = files.inode(entry.ino);
  prepare(files, *info, make_file(files, caller, std::move(opened)), inode);
  const ParallelWrites parallel(info->direct_io != 0);
  if (fuse_reply_create(request, &entry, info) == 0) return;
  files.files().close(info->fh);
  files.inodes().forget(inode, 1);
}

// The file below says now what it could not write.
void flush(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* info) {
  const int another = ::dup(OpenFiles::at(info->fh).descriptor.get());
  fuse_reply_err(request, another >= 0 && ::close(another) == 0 ? 0 : errno);
}

void release(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* info) {
  static_cast<PosixFileSystem*>(fuse_req_userdata(request))->files().close(info->fh);
  fuse_reply_err(request, 0);
}

void fsync(fuse_req_t request, fuse_ino_t /*number*/, int only_data, fuse_file_info* info) {
  const int descriptor = OpenFiles::at(info->fh).descriptor.get();
  const int result = only_data != 0 ? ::fdatasync(descriptor) : ::fsync(descriptor);
  fuse_reply_err(request, result == 0 ? 0 : errno);
}

void fallocate(fuse_req_t request, fuse_ino_t /*number*/, int mode, off_t offset, off_t length,
               fuse_file_info* info) {
  (void)file_system_for(request);
  const int result = ::fallocate(OpenFiles::at(info->fh).descriptor.get(), mode, offset, length);
  fuse_reply_err(request, result == 0 ? 0 : errno);
}

void lseek(fuse_req_t request, fuse_ino_t /*number*/, off_t offset, int whence,
           fuse_file_info* info) {
  const off_t found = ::lseek(OpenFiles::at(info->fh).descriptor.get(), offset, whence);
  if (found < 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_lseek(request, found);
  }
}

void copy_file_range(fuse_req_t request, fuse_ino_t /*from*/, off_t from_offset,
                     fuse_file_info* from, fuse_ino_t /*to*/, off_t to_offset, fuse_file_info* to,
                     std::size_t size, int flags) {
  (void)file_system_for(request);
  const ssize_t copied =
      ::copy_file_range(OpenFiles::at(from->fh).descriptor.get(), &from_offset,
                        OpenFiles::at(to->fh).descriptor.get(), &to_offset,
                        std::min(size, kLargestCopy), static_cast<unsigned>(flags));
  if (copied < 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_write(request, static_cast<std::size_t>(copied));
  }
}

void statfs(fuse_req_t request, fuse_ino_t number) {
  PosixFileSystem& files = file_system_for(request);
  struct statvfs status = {};
  if (::fstatvfs(files.inode(number).descriptor.get(), &status) != 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_statfs(request, &status);
  }
}

}  // namespace

void add_file_operations(fuse_lowlevel_ops& operations) {
  operations.open = open;
  operations.create = create;
  operations.flush = flush;
  operations.release = release;
  operations.fsync = fsync;
  operations.fallocate = fallocate;
  operations.lseek = lseek;
  operations.copy_file_range = copy_file_range;
  operations.statfs = statfs;
}

}  // namespace vpfs::fuse
