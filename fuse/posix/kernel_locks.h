#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fuse/message.h"

namespace vpfs::fuse {

// The objects that a request on names and attributes is about, by the kernel's numbers, and whether
// the kernel keeps them locked until it has the answer.
struct KernelLocks {
  std::array<std::uint64_t, 2> objects = {};  // 0: none; those that others may be about too
  bool kept = false;
  bool asks = false;  // it changes nothing and lists nothing

  // `message` begins with `head`; `is_directory`: the object that it is about.
  //
  // Linux locks a directory while a name is looked up, made, moved or removed in it, and while it
  // is listed, and an object while it is changed. A look-up may be one without a lock, which the
  // message does not tell. The kernel asks for attributes and ACLs of a directory to see whether a
  // name may be made in it, with the lock.
  [[nodiscard]] static KernelLocks of(const fuse_in_header& head,
                                      std::span<const std::byte> message, bool is_directory);
};

}  // namespace vpfs::fuse
