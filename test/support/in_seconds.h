#pragma once

#include <chrono>

#include "base/clock.h"

namespace vpfs {

[[nodiscard]] constexpr double in_seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace vpfs
