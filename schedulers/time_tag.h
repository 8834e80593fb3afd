#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace vpfs {

// A time as the tag of a heap. Times before the clock's beginning count as its beginning.
[[nodiscard]] inline std::uint64_t time_tag(TimePoint time) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(time.time_since_epoch().count(), 0));
}
[[nodiscard]] inline TimePoint time_of(std::uint64_t tag) {
  return TimePoint(Duration(static_cast<std::int64_t>(tag)));
}

}  // namespace vpfs
