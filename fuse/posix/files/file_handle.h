#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "net/descriptor.h"

namespace vpfs::fuse {

// What a file system calls an object of its own: it stays the object's, and no later one's, so that
// it opens that object or none (name_to_handle_at). It takes no descriptor.
struct FileHandle {
  std::int32_t type = 0;
  std::string bytes = {};
  int mount = -1;  // that the object was found in; not a part of the handle

  // The handle of an open object, or of a name in a directory, which is not followed. Nothing, with
  // errno: the file system has none, or the name is not there.
  [[nodiscard]] static std::optional<FileHandle> of(int descriptor);
  [[nodiscard]] static std::optional<FileHandle> of(int directory, const char* name);
  // Opens the object. `anchor` is any descriptor that is open in its file system. -1 with errno:
  // ESTALE if it is gone, EPERM without CAP_DAC_READ_SEARCH.
  [[nodiscard]] int open(int anchor, int flags) const;
};

// What the objects of a mounted directory are opened with by their handles. It is of one mount
// below: what else is mounted within the directory has flags of its own, and must not be kept busy,
// so its objects stay open while they are known. Thread-safe; it never changes.
class HandleAnchor {
 public:
  // At a directory, which is open in any way. It does not serve if the directory's handle does not
  // open it, or if the file system is not known to keep handles.
  explicit HandleAnchor(int directory);

  // Whether handles of that mount serve.
  [[nodiscard]] bool serves(int mount) const { return anchor_ && mount == mount_; }
  // For FileHandle::open(). -1: none serve.
  [[nodiscard]] int descriptor() const { return anchor_.get(); }

 private:
  net::Descriptor anchor_;
  int mount_ = -1;
};

}  // namespace vpfs::fuse
