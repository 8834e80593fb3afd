#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include <sys/types.h>

#include "fuse/descriptor.h"

namespace vpfs::fuse {

// The application that opened a file: the process's user and, where it has one, its job.
struct Opener {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string jobid;  // "": none
};

// A file that is open: the kernel's handle. I/O that was interrupted may outlast its release, so
// the I/O shares it.
struct OpenFile {
  Descriptor descriptor;
  Opener opener;
  // It had a set-user-id or set-group-id bit, which the file system below may clear with a write.
  bool has_id_bits = false;
};
using OpenFilePtr = std::shared_ptr<OpenFile>;  // the kernel's handle is one in memory of its own

[[nodiscard]] inline std::uint64_t handle_of(OpenFilePtr file) {
  // Ends in close_handle().
  return reinterpret_cast<std::uint64_t>(new OpenFilePtr(std::move(file)));  // NOLINT
}
[[nodiscard]] inline const OpenFilePtr& file_of(std::uint64_t handle) {
  return *reinterpret_cast<const OpenFilePtr*>(handle);  // NOLINT
}
inline void close_handle(std::uint64_t handle) {
  delete reinterpret_cast<const OpenFilePtr*>(handle);  // NOLINT
}

}  // namespace vpfs::fuse
