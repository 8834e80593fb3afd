// Operations that list directories.
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "fuse/posix/files/file_system.h"

namespace vpfs::fuse {
namespace {

void opendir(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, fuse_file_info* info) {
  OpenPlace place(files.inodes(), fuse_req_ctx(request)->uid, Inodes::Patience::enough);
  const ObjectPath path = place ? files.path(number) : nullptr;
  net::Descriptor opened(path ? files.open_again(*path, O_RDONLY | O_DIRECTORY) : -1);
  DIR* const stream = opened ? ::fdopendir(opened.get()) : nullptr;
  if (stream == nullptr) {
    answer_error(request, errno);
    return;
  }
  (void)opened.release();
  info->fh = files.directories().add(
      std::make_shared<OpenDirectory>(stream, fuse_req_ctx(request)->uid, std::move(place)));
  if (fuse_reply_open(request, info) != 0) files.directories().close(info->fh);
}

void releasedir(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* info) {
  file_system_of(request).directories().close(info->fh);
  fuse_reply_err(request, 0);
}

void fsyncdir(fuse_req_t request, fuse_ino_t /*number*/, int only_data, fuse_file_info* info) {
  const int descriptor = ::dirfd(file_system_of(request).directories().at(info->fh).stream);
  const int result = only_data != 0 ? ::fdatasync(descriptor) : ::fsync(descriptor);
  fuse_reply_err(request, result == 0 ? 0 : errno);
}

bool is_dot(std::string_view name) {
  return name == "." || name == "..";
}

// One answer of entries, with the attributes of each or without.
class Listing {
 public:
  Listing(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, std::size_t size,
          bool with_attributes)
      : request_(request),
        files_(files),
        number_(number),
        room_(size),
        with_attributes_(with_attributes) {}

  // False: the entry has no room any more.
  [[nodiscard]] bool add(const dirent& each) {
    char* const at = room_.data() + used_;
    const std::size_t left = room_.size() - used_;
    fuse_entry_param entry = {};
    entry.attr.st_ino = each.d_ino;
    entry.attr.st_mode = static_cast<mode_t>(DTTOIF(each.d_type));
    if (!with_attributes_) {
      return take(fuse_add_direntry(request_, at, left, each.d_name, &entry.attr, each.d_off));
    }
    // Whether it has room depends on the name alone, and a look-up must not be lost.
    if (fuse_add_direntry_plus(request_, nullptr, 0, each.d_name, &entry, each.d_off) > left) {
      return false;
    }
    // An entry that is gone meanwhile, or cannot be looked up, comes without attributes. So does
    // one on which something is mounted: what is known of it may be older than what another call
    // has just asked it for.
    const uid_t user = fuse_req_ctx(request_)->uid;
    if (!is_dot(each.d_name) &&
        (files_.inodes().knows_enough(user) ||
         files_.look_up(number_, each.d_name, user, entry, PosixFileSystem::LookUp::listed) != 0)) {
      entry = {};
      entry.attr.st_ino = each.d_ino;
      entry.attr.st_mode = static_cast<mode_t>(DTTOIF(each.d_type));
    }
    if (entry.ino != 0) looked_up_.push_back(entry.ino);
    return take(fuse_add_direntry_plus(request_, at, left, each.d_name, &entry, each.d_off));
  }

  void answer() {
    if (fuse_reply_buf(request_, room_.data(), used_) == 0) return;
    for (const fuse_ino_t each : looked_up_) files_.inodes().forget(files_.inode(each), 1);
  }
  [[nodiscard]] bool empty() const { return used_ == 0; }

 private:
  bool take(std::size_t size) {
    if (size > room_.size() - used_) return false;
    used_ += size;
    return true;
  }

  fuse_req_t request_;
  PosixFileSystem& files_;
  fuse_ino_t number_;
  std::vector<char> room_;
  std::size_t used_ = 0;
  bool with_attributes_;
  std::vector<fuse_ino_t> looked_up_;
};

void list(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, std::size_t size,
          off_t offset, const fuse_file_info& info, bool with_attributes) {
  OpenDirectory& directory = files.directories().at(info.fh);
  if (offset != directory.offset) {
    ::seekdir(directory.stream, offset);
    directory.offset = offset;
    directory.next = nullptr;
  }
  Listing listing(request, files, number, size, with_attributes);
  for (;;) {
    if (directory.next == nullptr) {
      errno = 0;
      directory.next = ::readdir(directory.stream);
      if (directory.next == nullptr && errno != 0 && listing.empty()) {
        fuse_reply_err(request, errno);
        return;
      }
      if (directory.next == nullptr) break;
    }
    if (!listing.add(*directory.next)) break;
    directory.offset = directory.next->d_off;
    directory.next = nullptr;
  }
  listing.answer();
}

void readdir(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, std::size_t size,
             off_t offset, fuse_file_info* info) {
  list(request, files, number, size, offset, *info, false);
}

void readdirplus(fuse_req_t request, PosixFileSystem& files, fuse_ino_t number, std::size_t size,
                 off_t offset, fuse_file_info* info) {
  list(request, files, number, size, offset, *info, true);
}

}  // namespace

void add_directory_operations(fuse_lowlevel_ops& operations) {
  operations.opendir = in_place_of_caller<opendir>;
  operations.releasedir = releasedir;
  operations.fsyncdir = fsyncdir;
  operations.readdir = in_place_of_caller<readdir>;
  operations.readdirplus = in_place_of_caller<readdirplus>;
}

}  // namespace vpfs::fuse
