#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <dirent.h>
#include <sys/types.h>

#include "base/clock.h"
#include "fuse/posix/files/file_users.h"
#include "fuse/posix/files/inodes.h"
#include "fuse/posix/files/numbered.h"
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
  // False with ENFILE in errno: the user has as many as it may, though the call has waited. Or with
  // ERESTART.
  OpenPlace(Inodes& inodes, uid_t user, Inodes::Patience patience)
      : inodes_(inodes.take_descriptor(user, patience) ? &inodes : nullptr), user_(user) {}
  // Whatever the user has: another process has given it before.
  [[nodiscard]] static OpenPlace given_before(Inodes& inodes, uid_t user) {
    OpenPlace place;
    inodes.take_descriptor_again(user);
    place.inodes_ = &inodes;
    place.user_ = user;
    return place;
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
  std::uint64_t number = 0;  // the kernel's, of the open file and of the object
  std::uint64_t inode = 0;
  Opener opener;
  // It had a set-user-id or set-group-id bit, which the file system below may clear with a write.
  bool has_id_bits = false;
  bool passes_cache = false;  // open for direct I/O
  // The last close of one of its descriptors, and the thread.
  std::atomic<TimePoint> closed_at = TimePoint();
  std::atomic<pid_t> closed_by = 0;
};
using OpenFiles = OpenObjects<OpenFile>;
using OpenFilePtr = OpenFiles::Pointer;

// The kernel asks for one listing at a time.
struct OpenDirectory {
  OpenDirectory(DIR* opened, uid_t opener, OpenPlace held)
      : place(std::move(held)), uid(opener), stream(opened) {}
  ~OpenDirectory() { ::closedir(stream); }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;

  OpenPlace place;
  const uid_t uid;           // that opened it
  std::uint64_t number = 0;  // the kernel's
  DIR* stream;
  off_t offset = 0;        // negative: not known, another process has read it before
  dirent* next = nullptr;  // did not fit into the last answer
};
using OpenDirectories = OpenObjects<OpenDirectory>;

}  // namespace vpfs::fuse
