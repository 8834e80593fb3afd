#pragma once

#include "base/clock.h"

namespace vpfs::sim {

// When an Engine begins.
inline constexpr TimePoint kStart{};

}  // namespace vpfs::sim
