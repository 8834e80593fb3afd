#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <sys/stat.h>

#include "fuse/descriptor.h"

namespace vpfs::fuse {

// A file, directory or other object of the directory below that the kernel knows. Its descriptor
// (O_PATH) keeps its number from being used again.
struct Inode {
  Descriptor descriptor;
  dev_t device = 0;
  ino_t number = 0;
  mode_t type = 0;            // S_IFMT of its mode
  std::uint64_t lookups = 0;  // of the kernel; the table's own

  // What the last open saw, for the page cache (see OpenFile).
  std::mutex seen_mutex;
  timespec seen_changed = {};
  off_t seen_size = -1;
};

// All of them. Thread-safe.
class Inodes {
 public:
  // `root` stays for ever.
  Inodes(Descriptor root, const struct stat& attributes);

  [[nodiscard]] Inode& root() { return *root_; }
  [[nodiscard]] dev_t root_device() const { return root_->device; }
  // One more look-up of the object with these attributes, by the kernel. Null: it is not known.
  [[nodiscard]] Inode* look_up(const struct stat& attributes);
  // The same of one that `opened` (O_PATH) leads to.
  [[nodiscard]] Inode& look_up(Descriptor opened, const struct stat& attributes);
  // The kernel takes look-ups back. The object is forgotten with the last.
  void forget(Inode& inode, std::uint64_t lookups);

  [[nodiscard]] std::size_t size() const;

 private:
  struct Key {
    dev_t device;
    ino_t number;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::uint64_t>()(key.number * 0x9e3779b97f4a7c15U + key.device);
    }
  };

  mutable std::mutex mutex_;
  std::unordered_map<Key, std::unique_ptr<Inode>, Hash> all_;
  Inode* root_;
};

}  // namespace vpfs::fuse
