#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"

namespace vpfs {

// What a coordinator allows a flow beside the limits of its share; the stricter one holds. Nothing:
// no limit. Zero: nothing but what has waited for long (see RateLimits).
struct Limits {
  std::optional<BytesPerSecond> bytes = {};
  std::optional<std::uint64_t> operations = {};  // each second

  [[nodiscard]] bool any() const { return bytes || operations; }
  bool operator==(const Limits&) const = default;
};

}  // namespace vpfs
