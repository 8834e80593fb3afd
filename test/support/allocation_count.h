#pragma once

#include <cstdint>

namespace vpfs {

// The number of allocations of this program so far. allocation_count.cc replaces the global
// operator new of a test program by one that counts.
[[nodiscard]] std::uint64_t allocation_count();

}  // namespace vpfs
