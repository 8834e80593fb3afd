#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "base/result.h"
#include "fuse/posix/files/file_handle.h"
#include "fuse/posix/files/numbered.h"
#include "fuse/user_shares.h"
#include "net/descriptor.h"

namespace vpfs {
class ByteReader;
}  // namespace vpfs

namespace vpfs::fuse {

// An object that is open with O_PATH, for calls on it. -1: none.
using ObjectPath = std::shared_ptr<const net::Descriptor>;  // a call shares it with the table

// What names an object of the directory below, for ever: its handle or, where the file system has
// none that serves, its number. A number is used again when its object is gone, so such an object
// stays open while it is known.
struct ObjectName {
  dev_t device = 0;
  FileHandle handle;  // kPinned as its type: the bytes are those of the object's number

  static constexpr std::int32_t kPinned = INT32_MIN;
  [[nodiscard]] bool is_pinned() const { return handle.type == kPinned; }
  bool operator==(const ObjectName& other) const {
    return device == other.device && handle.type == other.handle.type &&
           handle.bytes == other.handle.bytes;
  }
};

// A file, directory or other object of the directory below that the kernel knows. Its fields belong
// to the table, except for those that never change.
struct Inode {
  const ObjectName* name = nullptr;   // the table's own; never changes
  std::uint64_t node = 0;             // the kernel's number of it; never changes
  ino_t number = 0;                   // never changes
  mode_t type = 0;                    // S_IFMT of its mode; never changes
  std::uint64_t lookups = 0;          // of the kernel
  ObjectPath path;                    // if it is open
  std::list<Inode*>::iterator place;  // in the list of those that are open

  // If it stays open: the user that pays for it, and a name that the kernel knew it by.
  uid_t user = 0;
  std::uint64_t parent = 0;  // the kernel's number
  std::string entry;

  // What the last open saw, for the page cache (see OpenFile).
  timespec seen_changed = {};
  off_t seen_size = -1;

  std::uint64_t noted = 0;  // the last hand-over that has it among its changes
};

// All of them. A known object takes memory, and no descriptor: those that calls have used lately
// are open, at most `paths`. Where handles do not serve, each known object is open. Then a user may
// have as many as the shares of descriptors allow, and the kernel is asked in time to forget the
// oldest (names_to_forget()). A call that finds no room waits a little for what the kernel forgets,
// unless nothing of its user's can be forgotten.
//
// Thread-safe.
class Inodes {
 public:
  struct Limits {
    std::size_t paths = 256;
    std::size_t descriptors = 1024;                // of open files and of objects that stay open
    bool shared = true;                            // among users
    std::chrono::milliseconds longest_wait{1500};  // for room
  };

  // `root` stays open for ever.
  Inodes(net::Descriptor root, const struct stat& attributes, Limits limits);

  [[nodiscard]] Inode& root() { return *root_; }
  // The object that the kernel knows by a number; look_up() gave it. Takes no lock.
  [[nodiscard]] Inode& at(std::uint64_t node) {
    return node == kRoot ? *root_ : *numbers_.at(node);
  }
  [[nodiscard]] dev_t root_device() const { return root_->name->device; }

  // One more look-up by the kernel of what a directory has under a name, with its attributes. Null
  // with 0: it is not known, or the name has changed meanwhile, or it has no handle that serves.
  // Null with an errno.
  [[nodiscard]] Inode* look_up_known(int directory, const char* name, struct stat& attributes,
                                     int& problem);
  // The name of the kernel's look-up, if there was one, and on whose behalf it came.
  struct Cause {
    uid_t user = 0;
    std::uint64_t parent = 0;
    const char* entry = "";
    bool is_mount = false;  // FoundEntry::is_mount
    bool is_made = false;   // by this call, which cannot begin anew
  };
  // The same of an object that is open; `attributes` are its own. It may wait briefly. Null with
  // errno: ENFILE, the user has as many open as it may; ERESTART, see let_none_wait().
  [[nodiscard]] Inode* look_up(net::Descriptor opened, const struct stat& attributes,
                               const Cause& cause);
  // The kernel takes look-ups back. The object is forgotten with the last.
  void forget(Inode& inode, std::uint64_t lookups);

  // Opens the object if it is not. Null with errno.
  [[nodiscard]] ObjectPath path(Inode& inode);

  // Whether an open finds the file as the last one did. `settled`: a later change would show in the
  // time of the last change.
  [[nodiscard]] bool is_unchanged(Inode& inode, const struct stat& now, bool settled);

  // How long a call waits for room. The kernel holds the lock of a directory while a name is looked
  // up or made in it, and forgets none of its names meanwhile. So such a call must not wait long.
  enum class Patience { brief, enough };
  // A descriptor for a file that a user opens. False with errno: ENFILE, it has as many as it may;
  // ERESTART.
  [[nodiscard]] bool take_descriptor(uid_t user, Patience patience);
  void give_descriptor_back(uid_t user);
  // Whatever the user has: it is one that a predecessor has given.
  void take_descriptor_again(uid_t user);
  // From now on, or no more: the kernel is not heard, so it forgets nothing. A call that would wait
  // for room has ERESTART, and is to begin anew. What a call has made is known whatever its user
  // has.
  void let_none_wait(bool on);

  // Called when a user has many objects that stay open, by the thread that opened one more; it must
  // only post. Set before threads use the table.
  void when_many_stay_open(std::function<void(uid_t user)> tell) { tell_ = std::move(tell); }
  struct Name {
    std::uint64_t parent = 0;  // the kernel's number
    std::string entry;
  };
  // How many of the user's objects stay open; 0 if that is not many.
  [[nodiscard]] std::size_t stay_open(uid_t user) const;
  // Those that the kernel should forget among so many of the user's objects that stay open, the
  // oldest first; none if few stay open, and no directories. The same comes again only after all
  // others.
  [[nodiscard]] std::vector<Name> names_to_forget(uid_t user, std::size_t looks);
  // Whether the kernel may be told of one more object for the user. It may wait briefly. False with
  // ENFILE or ERESTART in errno.
  [[nodiscard]] bool may_know_more(uid_t user);
  // Whether the user has so many objects that stay open that the kernel should be told of no more
  // than it asks for.
  [[nodiscard]] bool knows_enough(uid_t user) const;

  // For a successor in another process, which has the same numbers. note_changes(): from now on
  // what changes is noted; it gives the numbers that are known, without the lock, so calls go on.
  // take_changes(): those that have changed since then, or are gone. save() writes some of the
  // numbers from `next` on, those that are known, and moves `next` behind them.
  static constexpr std::size_t kMostOpenAtOnce = 250;
  struct Saved {
    std::string records;
    std::vector<ObjectPath> open;  // of those that are open, in the order of their records
  };
  [[nodiscard]] std::vector<std::uint64_t> note_changes();
  [[nodiscard]] std::vector<std::uint64_t> take_changes();
  [[nodiscard]] Saved save(std::span<const std::uint64_t> nodes, std::size_t& next);
  // The other way round, before any look-up. What has changed since it came is dropped first.
  void drop(std::span<const std::uint64_t> nodes);
  [[nodiscard]] Result<void> restore(std::string_view records, std::vector<net::Descriptor> open);
  // Whether objects are opened by their handles here.
  [[nodiscard]] bool has_handles() const { return anchor_.descriptor() >= 0; }

  [[nodiscard]] std::size_t size() const;
  // Objects that are open, for calls on them or because they stay so.
  [[nodiscard]] std::size_t open_objects() const;

 private:
  struct Hash {
    std::size_t operator()(const ObjectName& name) const {
      return std::hash<std::string>()(name.handle.bytes) + name.device;
    }
  };

  // REQUIRES of these: mutex_ is locked.
  void note(Inode& inode) {
    if (!notes_ || std::exchange(inode.noted, hand_over_) == hand_over_) return;
    changed_.push_back(inode.node);
  }
  [[nodiscard]] std::unique_ptr<Inode> take_out(Inode& inode);
  [[nodiscard]] bool restore(ByteReader& record, std::vector<net::Descriptor>& open,
                             std::size_t& used);
  [[nodiscard]] std::uint64_t free_descriptors() const;
  [[nodiscard]] bool may_take(uid_t user) const;
  [[nodiscard]] bool may_stay_open(uid_t user) const;
  [[nodiscard]] bool has_many_open(uid_t user) const;
  void keep_open(Inode& inode, ObjectPath path, ObjectPath& closes);
  // Waits a moment for what is forgotten if there is little room.
  void slow_down(std::unique_lock<std::mutex>& lock, uid_t user);
  // Waits until `may` is true. ENFILE: it is not, after the time that the patience allows.
  // ERESTART: none may wait now.
  template <typename May>
  [[nodiscard]] int wait_for_room(std::unique_lock<std::mutex>& lock, uid_t user, Patience patience,
                                  May may);

  [[nodiscard]] ObjectName name_of(std::optional<FileHandle> handle, const struct stat& attributes,
                                   bool is_mount) const;

  const HandleAnchor anchor_;
  const Limits limits_;
  std::function<void(uid_t user)> tell_;
  mutable std::mutex mutex_;
  std::unordered_map<ObjectName, std::unique_ptr<Inode>, Hash> all_;
  std::list<Inode*> open_;  // those that can be closed, the last used first
  // Those that stay open, of each user, the oldest first. The root is not among them.
  std::unordered_map<uid_t, std::list<Inode*>> pinned_;
  std::size_t pinned_count_ = 0;
  UserShares shares_;  // of descriptors
  std::condition_variable room_;
  std::size_t waiting_ = 0;  // for room
  bool none_waits_ = false;
  // Users with a wait that was in vain, by its patience, if nothing has been forgotten since. Their
  // calls do not wait so again: what they have may be in use, and others may need the lock of the
  // directory.
  std::array<std::unordered_set<uid_t>, 2> in_vain_;
  Inode* root_ = nullptr;
  static constexpr std::uint64_t kRoot = 1;  // FUSE_ROOT_ID
  Numbered<Inode> numbers_{kRoot + 1};
  bool notes_ = false;
  std::uint64_t hand_over_ = 0;  // they are counted
  std::vector<std::uint64_t> changed_;
};

}  // namespace vpfs::fuse
