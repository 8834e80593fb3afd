#pragma once

#include <cstdint>
#include <limits>

namespace vpfs::allocation {

// The largest amount that a message can carry.
inline constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

}  // namespace vpfs::allocation
