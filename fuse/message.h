#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <linux/fuse.h>

#include "base/check.h"

// The kernel's side of FUSE, as <linux/fuse.h> has it: one message for each request.
namespace vpfs::fuse {

// The largest read or write that the kernel sends.
inline constexpr std::size_t kLargestIo = std::size_t{1} << 20;
// Everything in front of the data of a write.
inline constexpr std::size_t kWriteHead = sizeof(fuse_in_header) + sizeof(fuse_write_in);

// The fixed part of a message's body. REQUIRES: the message is that long, which the kernel makes
// sure of.
template <typename Body>
[[nodiscard]] Body body_of(std::span<const std::byte> message) {
  Body body;
  VPFS_ASSERT(message.size() >= sizeof(fuse_in_header) + sizeof body);
  std::memcpy(&body, message.data() + sizeof(fuse_in_header), sizeof body);
  return body;
}

// The number that an INTERRUPT, which has no answer, adds to that of the request it is about.
inline constexpr std::uint64_t kInterruptBit = 1;

}  // namespace vpfs::fuse
