#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fuse/posix/io_request.h"

namespace vpfs::fuse {

// Does a read or write in the file below, from IoRequest::moved on, which counts what was done.
// Returns an errno, or 0. A process's write that fails after its first bytes is a short one. One of
// the kernel's cache is an error then: the kernel would count all of its pages as written.
//
// A file below that was opened for direct I/O takes whole blocks only. Not all requests have them:
// a process may switch direct I/O off (dd does so for its last block), and the last of the mapped
// pages is written as far as the file goes. From such a request on, the I/O of the file goes
// through the cache below.
[[nodiscard]] int read_below(IoRequest& request, std::span<std::byte> into);
[[nodiscard]] int write_below(IoRequest& request, std::span<std::byte> from);

// RWF_SYNC, RWF_DSYNC or 0, by the flags of a process's write. If it is not direct, the kernel asks
// for that by itself.
[[nodiscard]] int syncs_of(std::uint32_t flags);

// Whether reads of it pass the cache below.
[[nodiscard]] bool is_direct(int descriptor);

}  // namespace vpfs::fuse
