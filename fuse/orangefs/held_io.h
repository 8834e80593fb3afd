#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <sys/types.h>

#include "fuse/buffer.h"
#include "fuse/held_shares.h"

namespace vpfs::fuse::pvfs {

// What the reads and writes of a mount that wait for servers may take: places among the requests
// that the kernel gives at once, and memory for the data of writes. Users share both. Thread-safe.
struct HeldIo {
  struct Bounds {
    std::uint64_t requests = 0;  // 0: any number
    std::uint64_t bytes = 0;
  };
  explicit HeldIo(Bounds bounds) : requests(bounds.requests), bytes(bounds.bytes) {}

  HeldShares requests;
  HeldShares bytes;
};

// What one request takes of it, until it has ended.
class HeldPart {
 public:
  HeldPart() = default;
  // Nothing if the user has as many requests as it may, unless the request may not be refused.
  HeldPart(HeldIo& held, uid_t user, bool may_be_refused) : held_(&held), user_(user) {
    if (!may_be_refused) {
      held.requests.take(user, 1);
    } else if (!held.requests.take_one(user)) {
      held_ = nullptr;
    }
  }
  HeldPart(HeldPart&& other) noexcept
      : held_(std::exchange(other.held_, nullptr)), user_(other.user_), bytes_(other.bytes_) {}
  HeldPart& operator=(HeldPart&& other) noexcept {
    std::swap(held_, other.held_);
    std::swap(user_, other.user_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HeldPart() {
    if (held_ == nullptr) return;
    held_->requests.give_back(user_, 1);
    if (bytes_ > 0) held_->bytes.give_back(user_, bytes_);
  }
  [[nodiscard]] explicit operator bool() const { return held_ != nullptr; }

  // How much of a write that may be short its user has room for: whole pages, and one at least.
  [[nodiscard]] std::size_t part_of(std::size_t size) const {
    const std::uint64_t room = held_->bytes.room_for(user_);
    if (room >= size) return size;
    return std::min<std::size_t>(size,
                                 std::max<std::uint64_t>(room / Buffer::kPage, 1) * Buffer::kPage);
  }
  void keep(std::size_t bytes) {
    bytes_ = bytes;
    held_->bytes.take(user_, bytes);
  }

 private:
  HeldIo* held_ = nullptr;  // outlives it
  uid_t user_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace vpfs::fuse::pvfs
