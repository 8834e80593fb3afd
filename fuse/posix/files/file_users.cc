#include "fuse/posix/files/file_users.h"

#include <algorithm>

namespace vpfs::fuse {

FileUsers::Use FileUsers::begin(std::uint64_t inode, uid_t uid) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<File>& file = files_[inode];
  if (!file) {
    file = std::make_unique<File>();
    file->inode = inode;
  }
  const auto same = std::ranges::find(file->opens, uid, &Opens::uid);
  if (same != file->opens.end()) {
    ++same->count;
  } else {
    file->opens.push_back({.uid = uid, .count = 1});
    file->users = file->opens.size();
  }
  return {*this, *file, uid};
}

void FileUsers::end(File& file, uid_t uid) {
  const std::lock_guard lock(mutex_);
  const auto place = std::ranges::find(file.opens, uid, &Opens::uid);
  if (--place->count > 0) return;
  file.opens.erase(place);
  file.users = file.opens.size();
  if (file.opens.empty()) files_.erase(file.inode);
}

}  // namespace vpfs::fuse
