#pragma once

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include <dirent.h>
#include <sys/types.h>

#include "base/clock.h"
#include "fuse/handles.h"
#include "fuse/posix/files/file_users.h"
#include "fuse/posix/files/inodes.h"
#include "net/descriptor.h"

namespace vpfs::fuse {

// The application that opened a file: the process's user and, where it has one, its job.
struct Opener {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string jobid;  // "": none
};

// One of the descriptors that a user may have open (Inodes::take_descriptor()).
class OpenPlace {
 public:
  OpenPlace() = default;
  // False with ENFILE in errno: the user has as many as it may, though the call has waited.
  OpenPlace(Inodes& inodes, uid_t user, Inodes::Patience patience)
      : inodes_(inodes.take_descriptor(user, patience) ? &inodes : nullptr), user_(user) {
    if (inodes_ == nullptr) errno = ENFILE;
  }
  OpenPlace(OpenPlace&& other) noexcept
      : inodes_(std::exchange(other.inodes_, nullptr)), user_(other.user_) {}
  OpenPlace& operator=(OpenPlace&& other) noexcept {
    std::swap(inodes_, other.inodes_);
    std::swap(user_, other.user_);
    return *this;
  }
  ~OpenPlace() {
    if (inodes_ != nullptr) inodes_->give_descriptor_back(user_);
  }
  [[nodiscard]] explicit operator bool() const { return inodes_ != nullptr; }

 private:
  Inodes* inodes_ = nullptr;  // outlives it
  uid_t user_ = 0;
};

// I/O that was interrupted may outlast the file's release.
struct OpenFile : std::enable_shared_from_this<OpenFile> {
  OpenPlace place;  // given back after the descriptor is closed
  FileUsers::Use use;
  net::Descriptor descriptor;
  Opener opener;
  // It had a set-user-id or set-group-id bit, which the file system below may clear with a write.
  bool has_id_bits = false;
  bool passes_cache = false;  // open for direct I/O
  // The last close of one of its descriptors, and the thread.
  std::atomic<TimePoint> closed_at = TimePoint();
  std::atomic<pid_t> closed_by = 0;
};
using OpenFiles = Handles<OpenFile>;
using OpenFilePtr = OpenFiles::Pointer;

// The kernel asks for one listing at a time.
struct OpenDirectory {
  OpenDirectory(DIR* opened, OpenPlace held) : place(std::move(held)), stream(opened) {}
  ~OpenDirectory() { ::closedir(stream); }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;

  OpenPlace place;
  DIR* stream;
  off_t offset = 0;
  dirent* next = nullptr;  // did not fit into the last answer
};
using OpenDirectories = Handles<OpenDirectory>;

}  // namespace vpfs::fuse
