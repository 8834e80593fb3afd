#pragma once

#include <cstdint>
#include <mutex>

#include <sys/types.h>

#include "fuse/user_shares.h"

namespace vpfs::fuse {

// UserShares of what held requests take. Thread-safe.
class HeldShares {
 public:
  // 0: as much as they want.
  explicit HeldShares(std::uint64_t bound) : shares_(bound) {}

  // How much more the user may have.
  [[nodiscard]] std::uint64_t room_for(uid_t uid) const {
    const std::lock_guard lock(mutex_);
    return room(uid);
  }
  // False: it has as much as it may.
  [[nodiscard]] bool take_one(uid_t uid) {
    const std::lock_guard lock(mutex_);
    if (room(uid) == 0) return false;
    shares_.take(uid, 1);
    return true;
  }
  // Regardless of the room.
  void take(uid_t uid, std::uint64_t amount) {
    const std::lock_guard lock(mutex_);
    shares_.take(uid, amount);
  }
  void give_back(uid_t uid, std::uint64_t amount) {
    const std::lock_guard lock(mutex_);
    shares_.give_back(uid, amount);
  }

 private:
  [[nodiscard]] std::uint64_t room(uid_t uid) const {
    return shares_.bound() == 0 ? UINT64_MAX : shares_.room_for(uid);
  }

  mutable std::mutex mutex_;
  UserShares shares_;
};

}  // namespace vpfs::fuse
