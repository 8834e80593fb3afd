#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"

namespace vpfs {

// What a coordinator allows a flow beside the limits of its share; the stricter one holds. Nothing:
// no limit. Zero: nothing but what has waited for long (see RateLimits).
struct Limits {
  std::optional<BytesPerSecond> bytes = {};
  std::optional<std::uint64_t> operations = {};  // each second, as the following
  std::optional<std::uint64_t> metadata_operations = {};

  [[nodiscard]] bool any() const { return bytes || operations || metadata_operations; }
  bool operator==(const Limits&) const = default;

  template <typename Archive>
  void archive(Archive& fields) {
    fields("bytes", bytes);
    fields("operations", operations);
    fields("metadata_operations", metadata_operations);
  }
};

}  // namespace vpfs
