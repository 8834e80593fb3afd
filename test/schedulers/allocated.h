#pragma once

#include <cstdint>
#include <vector>

#include "schedulers/policies/registry.h"

// For tests of a coordinator's limits.
namespace vpfs {

inline constexpr AppId kFlow{0};

inline Limits bytes(std::uint64_t rate) {
  return {.bytes = BytesPerSecond{rate}};
}

inline std::vector<const PolicyKind*> policies_with_caps() {
  std::vector<const PolicyKind*> found;
  for (const PolicyKind* each : known_policies()) {
    if (each->caps) found.push_back(each);
  }
  return found;
}

}  // namespace vpfs
