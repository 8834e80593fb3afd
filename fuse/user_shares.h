#pragma once

#include <cstdint>
#include <unordered_map>

#include <sys/types.h>

namespace vpfs::fuse {

// How much of something that all users share each may have at once: threads, memory, descriptors.
// The thresholds are dynamic [Choudhury and Hahne, IEEE/ACM Transactions on Networking, 1998]: a
// user may have no more than is free. So one alone gets at most half, `k` users who want all get
// 1/(k+1) each, and something is left for one that comes later. Not thread-safe.
class UserShares {
 public:
  explicit UserShares(std::uint64_t bound) : bound_(bound) {}

  void set_bound(std::uint64_t bound) { bound_ = bound; }
  [[nodiscard]] std::uint64_t bound() const { return bound_; }
  // What all users have: more than the bound if that has shrunk, or if take() has passed it.
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] std::uint64_t taken_by(uid_t uid) const;

  // How much more the user may have, whatever others have.
  [[nodiscard]] std::uint64_t room_for(uid_t uid) const;
  // Whether any user may have so much more.
  [[nodiscard]] bool has_room_for_all(std::uint64_t amount) const {
    return 2 * taken_ + amount <= bound_;
  }
  // Regardless of the room.
  void take(uid_t uid, std::uint64_t amount);
  // REQUIRES: the user has it.
  void give_back(uid_t uid, std::uint64_t amount);

 private:
  std::uint64_t bound_;
  std::uint64_t taken_ = 0;
  std::unordered_map<uid_t, std::uint64_t> by_user_;
};

}  // namespace vpfs::fuse
