#pragma once

#include "base/clock.h"

namespace vpfs::test {

// When a test that sets the time itself begins. Times before it exist too.
inline constexpr TimePoint kStart{std::chrono::hours(1)};

}  // namespace vpfs::test
