#include "fuse/posix/inodes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>

#include "base/check.h"
#include "fuse/posix/credentials.h"

namespace vpfs::fuse {
namespace {

ObjectName name_by_number(dev_t device, ino_t number) {
  std::array<char, sizeof number> bytes = {};
  std::memcpy(bytes.data(), &number, sizeof number);
  return {.device = device,
          .handle = {.type = ObjectName::kPinned, .bytes = {bytes.data(), bytes.size()}}};
}

}  // namespace

Inodes::Inodes(Descriptor root, const struct stat& attributes, Limits limits)
    : limits_(limits), shares_(limits.descriptors) {
  const bool handles = anchors_.serve(root.get(), attributes.st_dev);
  std::optional<FileHandle> handle = handles ? FileHandle::of(root.get()) : std::nullopt;
  ObjectName name = handle ? ObjectName{.device = attributes.st_dev, .handle = std::move(*handle)}
                           : name_by_number(attributes.st_dev, attributes.st_ino);
  const auto place = all_.try_emplace(std::move(name), std::make_unique<Inode>()).first;
  root_ = place->second.get();
  root_->name = &place->first;
  root_->number = attributes.st_ino;
  root_->type = attributes.st_mode & S_IFMT;
  root_->lookups = 1;
  root_->path = std::make_shared<const Descriptor>(std::move(root));
}

// The handle comes first. If the name gets another object before its attributes are read, that one
// is younger, so at worst an object that is gone shows the attributes of its successor, and never
// the other way round.
Inode* Inodes::look_up_known(const Inode& parent, int directory, const char* name,
                             struct stat& attributes, int& problem) {
  problem = 0;
  ObjectName wanted = {.device = parent.name->device};
  const bool handles = anchors_.anchor(wanted.device) >= 0;
  std::optional<FileHandle> handle = handles ? FileHandle::of(directory, name) : std::nullopt;
  if (::fstatat(directory, name, &attributes, AT_SYMLINK_NOFOLLOW) != 0) {
    problem = errno;
    return nullptr;
  }
  if (handle && attributes.st_dev == wanted.device) {
    wanted.handle = std::move(*handle);
  } else {
    wanted = name_by_number(attributes.st_dev, attributes.st_ino);
  }
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(wanted);
  if (found == all_.end() || found->second->number != attributes.st_ino) return nullptr;
  ++found->second->lookups;
  return found->second.get();
}

Inode* Inodes::look_up(Descriptor opened, const struct stat& attributes, const Cause& cause) {
  std::optional<FileHandle> handle;
  if (anchors_.serve(opened.get(), attributes.st_dev)) handle = FileHandle::of(opened.get());
  ObjectName name = handle ? ObjectName{.device = attributes.st_dev, .handle = std::move(*handle)}
                           : name_by_number(attributes.st_dev, attributes.st_ino);
  ObjectPath closes;  // without the lock
  bool many = false;
  Inode* found = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = all_.try_emplace(std::move(name));
    if (is_new && place->first.is_pinned() && !may_stay_open(cause.user)) {
      all_.erase(place);
      many = true;
    } else {
      if (is_new) place->second = std::make_unique<Inode>();
      found = place->second.get();
      ++found->lookups;
    }
    if (is_new && found != nullptr) {
      found->name = &place->first;
      found->number = attributes.st_ino;
      found->type = attributes.st_mode & S_IFMT;
      if (place->first.is_pinned()) {
        found->user = cause.user;
        found->parent = cause.parent;
        found->entry = cause.entry;
        shares_.take(cause.user, 1);
        many = has_many_open(cause.user);
      }
      keep_open(*found, std::make_shared<const Descriptor>(std::move(opened)), closes);
    }
  }
  if (many && tell_) tell_(cause.user);
  if (found == nullptr) errno = ENFILE;
  return found;
}

// `closes` takes what is closed instead, for after the lock.
void Inodes::keep_open(Inode& inode, ObjectPath path, ObjectPath& closes) {
  inode.path = std::move(path);
  if (inode.name->is_pinned()) {
    inode.place = pinned_.insert(pinned_.end(), &inode);
    return;
  }
  inode.place = open_.insert(open_.begin(), &inode);
  if (open_.size() <= limits_.paths) return;
  closes = std::exchange(open_.back()->path, nullptr);
  open_.pop_back();
}

void Inodes::forget(Inode& inode, std::uint64_t lookups) {
  std::unique_ptr<Inode> gone;  // closed without the lock
  const std::lock_guard lock(mutex_);
  if (&inode == root_) return;
  VPFS_ASSERT(inode.lookups >= lookups);
  inode.lookups -= lookups;
  if (inode.lookups > 0) return;
  const bool pinned = inode.name->is_pinned();
  if (inode.path) (pinned ? pinned_ : open_).erase(inode.place);
  if (pinned) shares_.give_back(inode.user, 1);
  const auto found = all_.find(*inode.name);
  gone = std::move(found->second);
  all_.erase(found);
}

ObjectPath Inodes::path(Inode& inode) {
  {
    const std::lock_guard lock(mutex_);
    if (inode.path) {
      if (&inode != root_ && !inode.name->is_pinned()) {
        open_.splice(open_.begin(), open_, inode.place);
      }
      return inode.path;
    }
  }
  // The kernel knows the object, so it is not forgotten meanwhile.
  const auto open = [&] {
    const OwnCapabilities own;
    return inode.name->handle.open(anchors_.anchor(inode.name->device), O_PATH | O_NOFOLLOW);
  };
  Descriptor opened(open());
  if (!opened) return nullptr;
  auto path = std::make_shared<const Descriptor>(std::move(opened));
  ObjectPath closes;  // without the lock
  const std::lock_guard lock(mutex_);
  if (!inode.path) keep_open(inode, path, closes);
  return inode.path;
}

bool Inodes::is_unchanged(Inode& inode, const struct stat& now, bool settled) {
  const std::lock_guard lock(mutex_);
  const bool same = inode.seen_size == now.st_size &&
                    inode.seen_changed.tv_sec == now.st_mtim.tv_sec &&
                    inode.seen_changed.tv_nsec == now.st_mtim.tv_nsec;
  inode.seen_size = settled ? now.st_size : -1;
  inode.seen_changed = now.st_mtim;
  return same;
}

bool Inodes::take_descriptor(uid_t user) {
  bool many = false;
  bool may = false;
  {
    const std::lock_guard lock(mutex_);
    may = may_take(user);
    if (may) shares_.take(user, 1);
    many = !pinned_.empty() && has_many_open(user);
  }
  if (many && tell_) tell_(user);
  return may;
}

void Inodes::give_descriptor_back(uid_t user) {
  const std::lock_guard lock(mutex_);
  shares_.give_back(user, 1);
}

// The kernel gives these back when it is asked to, so a user may have more than its share of them
// while there is room. Then a walk goes on while the kernel forgets.
bool Inodes::may_stay_open(uid_t user) const {
  return may_take(user) || free_descriptors() > limits_.descriptors / 4;
}

std::uint64_t Inodes::free_descriptors() const {
  return shares_.bound() - std::min(shares_.taken(), shares_.bound());
}

bool Inodes::may_take(uid_t user) const {
  return limits_.shared ? shares_.room_for(user) > 0 : free_descriptors() > 0;
}

// Early enough that the kernel has forgotten some before the user must do without.
bool Inodes::has_many_open(uid_t user) const {
  return shares_.taken_by(user) > free_descriptors() / 2;
}

std::vector<Inodes::Name> Inodes::names_to_forget(uid_t user, std::size_t most) {
  std::vector<Name> names;
  const std::lock_guard lock(mutex_);
  if (!has_many_open(user)) return names;
  auto each = pinned_.begin();
  for (std::size_t looks = pinned_.size(); looks > 0 && names.size() < most; --looks) {
    const auto here = each++;
    const Inode& inode = **here;
    if (inode.user == user && !inode.entry.empty()) {
      names.push_back({.parent = inode.parent, .entry = inode.entry});
    }
    pinned_.splice(pinned_.end(), pinned_, here);
  }
  return names;
}

std::size_t Inodes::size() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

std::size_t Inodes::open_objects() const {
  const std::lock_guard lock(mutex_);
  return open_.size() + pinned_.size() + 1;
}

}  // namespace vpfs::fuse
