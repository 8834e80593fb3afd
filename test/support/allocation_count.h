#pragma once

#include <cstdint>

namespace vpfs {

// How often this program has allocated so far. A test program that lists allocation_count.cc among
// its sources has its global operator new replaced by one that counts.
[[nodiscard]] std::uint64_t allocation_count();

}  // namespace vpfs
