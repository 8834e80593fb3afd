#pragma once

#include <cstdint>

namespace vpfs {

// Added to the number of a mirror group where it appears among numbers of targets.
inline constexpr std::uint32_t kMirrorGroup = 0x10000;

}  // namespace vpfs
