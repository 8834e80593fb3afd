#pragma once

#include <chrono>

#include "base/clock.h"

namespace vpfs::sim_tool {

[[nodiscard]] inline double in_seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace vpfs::sim_tool
