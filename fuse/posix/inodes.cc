#include "fuse/posix/inodes.h"

#include <utility>

#include "base/check.h"

namespace vpfs::fuse {

Inodes::Inodes(Descriptor root, const struct stat& attributes)
    : root_(&look_up(std::move(root), attributes)) {}

Inode* Inodes::look_up(const struct stat& attributes) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find({.device = attributes.st_dev, .number = attributes.st_ino});
  if (found == all_.end()) return nullptr;
  ++found->second->lookups;
  return found->second.get();
}

Inode& Inodes::look_up(Descriptor opened, const struct stat& attributes) {
  const std::lock_guard lock(mutex_);
  const Key key = {.device = attributes.st_dev, .number = attributes.st_ino};
  std::unique_ptr<Inode>& place = all_[key];
  if (place == nullptr) {
    place = std::make_unique<Inode>();
    place->descriptor = std::move(opened);
    place->device = attributes.st_dev;
    place->number = attributes.st_ino;
    place->type = attributes.st_mode & S_IFMT;
  }
  ++place->lookups;
  return *place;
}

void Inodes::forget(Inode& inode, std::uint64_t lookups) {
  std::unique_ptr<Inode> gone;  // closed without the lock
  const std::lock_guard lock(mutex_);
  if (&inode == root_) return;
  VPFS_ASSERT(inode.lookups >= lookups);
  inode.lookups -= lookups;
  if (inode.lookups > 0) return;
  const auto found = all_.find({.device = inode.device, .number = inode.number});
  gone = std::move(found->second);
  all_.erase(found);
}

std::size_t Inodes::size() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

}  // namespace vpfs::fuse
