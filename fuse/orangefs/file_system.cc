#include "fuse/orangefs/file_system.h"

#include <algorithm>
#include <cerrno>

#include "fuse/mount_point.h"

namespace vpfs::fuse::pvfs {
namespace {

constexpr std::uint64_t kUnitOfBlocks = 512;  // of st_blocks, whatever st_blksize is
constexpr std::int64_t kLeastBlock = 64 << 10;
constexpr std::int64_t kLargestBlock = 1 << 20;

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

mode_t type_of(orangefs::ObjectType type) {
  switch (type) {
    case orangefs::ObjectType::directory:
      return S_IFDIR;
    case orangefs::ObjectType::symlink:
      return S_IFLNK;
    default:
      return S_IFREG;
  }
}

constexpr long kPartsOfSecond = 1'000'000'000;

timespec at(std::uint64_t time) {
  return {.tv_sec = static_cast<time_t>(time), .tv_nsec = 0};
}

void init(void* /*owner*/, fuse_conn_info* connection) {
  ask_for_limits(*connection);
}

// Locks that other nodes do not see would let two of them write where one should.
void refuse_posix_lock(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* /*info*/,
                       struct flock* /*lock*/) {
  fuse_reply_err(request, ENOLCK);
}

void refuse_posix_lock_change(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* /*info*/,
                              struct flock* /*lock*/, int /*sleep*/) {
  fuse_reply_err(request, ENOLCK);
}

void refuse_flock(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* /*info*/,
                  int /*operation*/) {
  fuse_reply_err(request, ENOLCK);
}

fuse_lowlevel_ops make_operations(bool local_locks) {
  fuse_lowlevel_ops table = {};
  table.init = init;
  add_name_operations(table);
  add_file_operations(table);
  add_directory_operations(table);
  add_attribute_operations(table);
  if (!local_locks) {
    table.getlk = refuse_posix_lock;
    table.setlk = refuse_posix_lock_change;
    table.flock = refuse_flock;
  }
  return table;
}

}  // namespace

const fuse_lowlevel_ops& OrangefsFileSystem::operations() const {
  static const fuse_lowlevel_ops without_locks = make_operations(false);
  static const fuse_lowlevel_ops with_local_locks = make_operations(true);
  return options_.local_locks ? with_local_locks : without_locks;
}

double OrangefsFileSystem::attribute_seconds() const {
  return seconds(options_.attribute_timeout);
}

struct stat OrangefsFileSystem::attributes_of(const client::Stat& object) const {
  struct stat attributes = {};
  attributes.st_ino = object.handle;
  attributes.st_mode = type_of(object.type) | object.permissions;
  attributes.st_nlink = 1;  // of a directory too: it does not say how many it has
  attributes.st_uid = object.uid;
  attributes.st_gid = object.gid;
  attributes.st_size = static_cast<off_t>(object.size);
  attributes.st_blocks = static_cast<blkcnt_t>((object.size + kUnitOfBlocks - 1) / kUnitOfBlocks);
  attributes.st_blksize = static_cast<blksize_t>(std::clamp(
      object.strip_size * std::max<std::int64_t>(object.datafiles, 1), kLeastBlock, kLargestBlock));
  std::uint64_t mtime = object.mtime;
  long part = 0;  // of a second; servers know none
  if (const auto open = objects_.find(object.handle)) {
    if (open->nameless) attributes.st_nlink = 0;
    const std::uint64_t written_at = open->written_at;
    if (written_at >= std::max<std::uint64_t>(mtime, 1)) {
      mtime = written_at;
      part = open->writes % kPartsOfSecond;
    }
  }
  attributes.st_atim = at(object.atime);
  attributes.st_mtim = at(mtime);
  attributes.st_mtim.tv_nsec = part;
  attributes.st_ctim = at(std::max(object.ctime, mtime));
  return attributes;
}

fuse_entry_param OrangefsFileSystem::entry_of(const client::Stat& object) const {
  fuse_entry_param entry = {};
  entry.ino = number_of(object.handle);
  entry.attr = attributes_of(object);
  entry.attr_timeout = seconds(options_.attribute_timeout);
  entry.entry_timeout = seconds(options_.entry_timeout);
  return entry;
}

}  // namespace vpfs::fuse::pvfs
