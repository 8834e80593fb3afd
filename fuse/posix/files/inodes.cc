#include "fuse/posix/files/inodes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <fcntl.h>

#include "base/check.h"
#include "fuse/credentials.h"

namespace vpfs::fuse {
namespace {

// A process that looks names up one by one gets the lock of the directory some milliseconds long
// before the threads that forget, so it is slowed down.
constexpr std::chrono::milliseconds kSlowDown(2);
// A call waits for room in such steps, and asks again before each.
constexpr std::chrono::milliseconds kStepOfWait(10);
constexpr std::chrono::milliseconds kBriefWait(100);

// The number of what is mounted may be an old one (find_entry()), so it names no other object.
ObjectName name_by_number(dev_t device, ino_t number, bool is_mount) {
  std::array<char, sizeof number + 1> bytes = {};
  std::memcpy(bytes.data(), &number, sizeof number);
  bytes.back() = is_mount ? '/' : '\0';
  return {.device = device,
          .handle = {.type = ObjectName::kPinned, .bytes = {bytes.data(), bytes.size()}}};
}

}  // namespace

Inodes::Inodes(net::Descriptor root, const struct stat& attributes, Limits limits)
    : anchor_(root.get()), limits_(limits), shares_(limits.descriptors) {
  ObjectName name = name_of(FileHandle::of(root.get()), attributes, false);
  const auto place = all_.try_emplace(std::move(name), std::make_unique<Inode>()).first;
  root_ = place->second.get();
  root_->name = &place->first;
  root_->node = kRoot;
  root_->number = attributes.st_ino;
  root_->type = attributes.st_mode & S_IFMT;
  root_->lookups = 1;
  root_->path = std::make_shared<const net::Descriptor>(std::move(root));
}

ObjectName Inodes::name_of(std::optional<FileHandle> handle, const struct stat& attributes,
                           bool is_mount) const {
  if (!handle || !anchor_.serves(handle->mount)) {
    return name_by_number(attributes.st_dev, attributes.st_ino, is_mount);
  }
  return {.device = attributes.st_dev, .handle = std::move(*handle)};
}

// The handle comes first. If the name gets another object before its attributes are read, that one
// is younger, so at worst an object that is gone shows the attributes of its successor, and never
// the other way round.
Inode* Inodes::look_up_known(int directory, const char* name, struct stat& attributes,
                             int& problem) {
  problem = 0;
  if (anchor_.descriptor() < 0) return nullptr;
  std::optional<FileHandle> handle = FileHandle::of(directory, name);
  if (!handle && errno == ENOENT) problem = ENOENT;
  // What is mounted there may hang, and must not be asked for its attributes.
  if (!handle || !anchor_.serves(handle->mount)) return nullptr;
  if (::fstatat(directory, name, &attributes, AT_SYMLINK_NOFOLLOW) != 0) {
    problem = errno;
    return nullptr;
  }
  const ObjectName wanted = name_of(std::move(handle), attributes, false);
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(wanted);
  if (found == all_.end() || found->second->number != attributes.st_ino) return nullptr;
  ++found->second->lookups;
  note(*found->second);
  return found->second.get();
}

Inode* Inodes::look_up(net::Descriptor opened, const struct stat& attributes, const Cause& cause) {
  std::optional<FileHandle> handle;
  if (anchor_.descriptor() >= 0) handle = FileHandle::of(opened.get());
  ObjectName name = name_of(std::move(handle), attributes, cause.is_mount);
  ObjectPath closes;  // without the lock
  bool many = false;
  Inode* found = nullptr;
  {
    std::unique_lock lock(mutex_);
    if (name.is_pinned() && !all_.contains(name)) slow_down(lock, cause.user);
    const auto may = [&] {
      return !name.is_pinned() || may_stay_open(cause.user) || all_.contains(name) ||
             (cause.is_made && none_waits_);
    };
    if (const int problem = wait_for_room(lock, cause.user, Patience::brief, may); problem != 0) {
      lock.unlock();
      errno = problem;
      return nullptr;
    }
    const auto [place, is_new] = all_.try_emplace(std::move(name));
    if (is_new) place->second = std::make_unique<Inode>();
    found = place->second.get();
    ++found->lookups;
    if (is_new) {
      found->node = numbers_.add(*found);
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
      keep_open(*found, std::make_shared<const net::Descriptor>(std::move(opened)), closes);
    }
    note(*found);
  }
  if (many && tell_) tell_(cause.user);
  return found;
}

// `closes` takes what is closed instead, for after the lock.
void Inodes::keep_open(Inode& inode, ObjectPath path, ObjectPath& closes) {
  inode.path = std::move(path);
  if (inode.name->is_pinned()) {
    std::list<Inode*>& all = pinned_[inode.user];
    inode.place = all.insert(all.end(), &inode);
    ++pinned_count_;
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
  note(inode);
  if (inode.lookups > 0) return;
  gone = take_out(inode);
}

std::unique_ptr<Inode> Inodes::take_out(Inode& inode) {
  const bool pinned = inode.name->is_pinned();
  if (pinned) {
    const auto all = pinned_.find(inode.user);
    all->second.erase(inode.place);
    if (all->second.empty()) pinned_.erase(all);
    --pinned_count_;
    shares_.give_back(inode.user, 1);
    for (std::unordered_set<uid_t>& users : in_vain_) users.erase(inode.user);
    if (waiting_ > 0) room_.notify_all();
  } else if (inode.path) {
    open_.erase(inode.place);
  }
  numbers_.remove(inode.node);
  const auto found = all_.find(*inode.name);
  std::unique_ptr<Inode> gone = std::move(found->second);
  all_.erase(found);
  return gone;
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
    return inode.name->handle.open(anchor_.descriptor(), O_PATH | O_NOFOLLOW);
  };
  net::Descriptor opened(open());
  if (!opened) return nullptr;
  auto path = std::make_shared<const net::Descriptor>(std::move(opened));
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
  note(inode);
  return same;
}

bool Inodes::take_descriptor(uid_t user, Patience patience) {
  bool many = false;
  int problem = 0;
  {
    std::unique_lock lock(mutex_);
    problem = wait_for_room(lock, user, patience, [&] { return may_take(user); });
    if (problem == 0) shares_.take(user, 1);
    many = pinned_.contains(user) && has_many_open(user);
  }
  if (many && tell_) tell_(user);
  if (problem != 0) errno = problem;
  return problem == 0;
}

void Inodes::give_descriptor_back(uid_t user) {
  const std::lock_guard lock(mutex_);
  shares_.give_back(user, 1);
  if (waiting_ > 0) room_.notify_all();
}

void Inodes::take_descriptor_again(uid_t user) {
  const std::lock_guard lock(mutex_);
  shares_.take(user, 1);
}

void Inodes::let_none_wait(bool on) {
  const std::lock_guard lock(mutex_);
  none_waits_ = on;
  room_.notify_all();
}

void Inodes::slow_down(std::unique_lock<std::mutex>& lock, uid_t user) {
  const bool has_little = free_descriptors() < limits_.descriptors / 8 * 3;
  if (!tell_ || !has_little || !pinned_.contains(user) || !has_many_open(user)) return;
  if (in_vain_.front().contains(user)) return;
  ++waiting_;
  room_.wait_for(lock, kSlowDown);
  --waiting_;
}

template <typename May>
int Inodes::wait_for_room(std::unique_lock<std::mutex>& lock, uid_t user, Patience patience,
                          May may) {
  const bool is_brief = patience == Patience::brief;
  std::unordered_set<uid_t>& in_vain = in_vain_.at(is_brief ? 0 : 1);
  const auto longest = is_brief ? std::min(kBriefWait, limits_.longest_wait) : limits_.longest_wait;
  for (auto left = longest / kStepOfWait; !may(); --left) {
    if (!tell_ || !pinned_.contains(user) || in_vain.contains(user)) return ENFILE;
    if (none_waits_) return ERESTART;
    if (left == 0) {
      in_vain.insert(user);
      return ENFILE;
    }
    lock.unlock();
    tell_(user);
    lock.lock();
    if (may()) return 0;
    ++waiting_;
    room_.wait_for(lock, kStepOfWait);
    --waiting_;
  }
  return 0;
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

bool Inodes::may_know_more(uid_t user) {
  if (anchor_.descriptor() >= 0) return true;
  std::unique_lock lock(mutex_);
  const int problem =
      wait_for_room(lock, user, Patience::brief, [&] { return may_stay_open(user); });
  lock.unlock();
  if (problem != 0) errno = problem;
  return problem == 0;
}

bool Inodes::knows_enough(uid_t user) const {
  const std::lock_guard lock(mutex_);
  return pinned_.contains(user) && has_many_open(user);
}

std::size_t Inodes::stay_open(uid_t user) const {
  const std::lock_guard lock(mutex_);
  const auto all = pinned_.find(user);
  return all == pinned_.end() || !has_many_open(user) ? 0 : all->second.size();
}

std::vector<Inodes::Name> Inodes::names_to_forget(uid_t user, std::size_t looks) {
  std::vector<Name> names;
  const std::lock_guard lock(mutex_);
  const auto found = pinned_.find(user);
  if (found == pinned_.end() || !has_many_open(user)) return names;
  std::list<Inode*>& all = found->second;
  for (looks = std::min(looks, all.size()); looks > 0; --looks) {
    const Inode& inode = *all.front();
    // What is mounted on a directory, or below it, would be detached.
    if (inode.type != S_IFDIR && !inode.entry.empty()) {
      names.push_back({.parent = inode.parent, .entry = inode.entry});
    }
    all.splice(all.end(), all, all.begin());
  }
  return names;
}

std::size_t Inodes::size() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

std::size_t Inodes::open_objects() const {
  const std::lock_guard lock(mutex_);
  return open_.size() + pinned_count_ + 1;
}

}  // namespace vpfs::fuse
