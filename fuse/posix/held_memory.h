#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <sys/types.h>

#include "base/units.h"
#include "fuse/buffer.h"
#include "fuse/user_shares.h"

namespace vpfs::fuse {

// The memory that writes keep while they wait, and the pipes of those whose data stay in the pages
// of the kernel instead. Users share both (UserShares). Thread-safe.
class HeldMemory {
 public:
  // No more pipes are used than `pipes`, one descriptor each.
  HeldMemory(Bytes bound, std::size_t pipes);

  void set_bound(Bytes bound);
  // Whether the next write may be kept, whichever user it is from. Reads one atomic number.
  [[nodiscard]] bool is_plentiful() const { return is_plentiful_; }
  [[nodiscard]] std::uint64_t room_for(uid_t uid) const;
  // Regardless of the room.
  void take(uid_t uid, std::uint64_t bytes);
  void give_back(uid_t uid, std::uint64_t bytes);
  [[nodiscard]] bool take_pipe(uid_t uid);
  // Regardless of the room: another process has taken it before.
  void take_pipe_again(uid_t uid);
  void give_pipe_back(uid_t uid);

  // A buffer of full size. Some are kept when they are given back, so that the kernel need not
  // clear their pages.
  [[nodiscard]] std::unique_ptr<Buffer> take_buffer();
  void give_back(std::unique_ptr<Buffer> buffer);

  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::size_t pipes() const;

 private:
  void look();

  std::atomic<bool> is_plentiful_ = true;
  mutable std::mutex mutex_;
  UserShares bytes_;
  UserShares pipes_;
  std::vector<std::unique_ptr<Buffer>> spare_;
};

}  // namespace vpfs::fuse
