#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include <sys/types.h>

#include "fuse/posix/user_shares.h"

namespace vpfs::fuse {

// The reads and writes that the mount has of the kernel, held or not. The kernel gives it a bounded
// number of those that no process waits for, and keeps everybody's further ones back. It does not
// say which they are, so all count, and users share the number (UserShares). Thread-safe.
class HeldRequests {
 public:
  // 0: any number.
  explicit HeldRequests(std::uint64_t bound) : requests_(bound) {}

  // One more of the user's. False: it has as many as it may.
  [[nodiscard]] bool take(uid_t uid) {
    const std::lock_guard lock(mutex_);
    if (requests_.bound() > 0 && requests_.room_for(uid) == 0) return false;
    requests_.take(uid, 1);
    return true;
  }
  // Regardless of how many it has.
  void take_anyway(uid_t uid) {
    const std::lock_guard lock(mutex_);
    requests_.take(uid, 1);
  }
  void give_back(uid_t uid) {
    const std::lock_guard lock(mutex_);
    requests_.give_back(uid, 1);
  }

 private:
  std::mutex mutex_;
  UserShares requests_;
};

}  // namespace vpfs::fuse
