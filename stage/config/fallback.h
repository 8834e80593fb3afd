#pragma once

#include <cstdint>

#include "base/units.h"

namespace vpfs::stage {

// What holds when a lease has ended.
struct Fallback {
  enum class Mode : std::uint8_t {
    configured,  // the configured shares alone
    last,        // the last limits stay
    rate,        // every virtual PFS that had a limit is limited to `rate`
  };
  Mode mode = Mode::configured;
  BytesPerSecond rate = {};

  bool operator==(const Fallback&) const = default;
};

}  // namespace vpfs::stage
