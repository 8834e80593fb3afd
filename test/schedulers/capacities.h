#pragma once

#include <cstdint>

#include "base/units.h"

namespace vpfs {

inline constexpr std::uint64_t kEdfCapacity = 1'000'000;  // a byte each microsecond
inline constexpr std::uint64_t kServerSpeed = 400 * kMiB;

}  // namespace vpfs
