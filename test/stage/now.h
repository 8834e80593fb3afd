#pragma once

#include "base/clock.h"

namespace vpfs::stage {

inline constexpr TimePoint kNow{std::chrono::seconds(100)};

}  // namespace vpfs::stage
