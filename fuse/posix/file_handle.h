#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include <sys/types.h>

#include "fuse/descriptor.h"

namespace vpfs::fuse {

// What a file system calls an object of its own: it stays the object's, and no later one's, so that
// it opens that object or none (name_to_handle_at). It takes no descriptor.
struct FileHandle {
  std::int32_t type = 0;
  std::string bytes = {};

  // Of an open object, or of a name in a directory, which is not followed. Nothing, with errno: the
  // file system has none, or the name is not there.
  [[nodiscard]] static std::optional<FileHandle> of(int descriptor);
  [[nodiscard]] static std::optional<FileHandle> of(int directory, const char* name);
  // Opens the object. `anchor` is any descriptor that is open in its file system. -1 with errno:
  // ESTALE if it is gone, EPERM without CAP_DAC_READ_SEARCH.
  [[nodiscard]] int open(int anchor, int flags) const;
};

// The file systems below a mounted directory whose objects can be opened by their handles. A few,
// by the device of their objects. Thread-safe.
class HandleAnchors {
 public:
  // Whether handles serve for objects like this open one (of any kind), which is on the device. The
  // first object of a device decides: it must be a directory, and its handle must open it.
  [[nodiscard]] bool serve(int descriptor, dev_t device);
  // For FileHandle::open(). -1: they do not serve.
  [[nodiscard]] int anchor(dev_t device) const;

 private:
  static constexpr std::size_t kMost = 64;

  mutable std::mutex mutex_;
  std::unordered_map<dev_t, Descriptor> anchors_;  // none in it: they do not serve
};

}  // namespace vpfs::fuse
