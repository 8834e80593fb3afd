#pragma once

#include <compare>
#include <cstdint>

#include "schedulers/request.h"

namespace vpfs::stage {

// Names a virtual PFS until it is retired. Its number is then used again with another generation.
struct VirtualPfsId {
  AppId app = {};
  std::uint32_t generation = 0;

  auto operator<=>(const VirtualPfsId&) const = default;
};

// Names a row of RuleRows until its rule goes. Its number is then used again with another
// generation, so an old reference counts for no rule.
struct RuleRef {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t row = kNone;
  std::uint32_t generation = 0;

  bool operator==(const RuleRef&) const = default;
};

// The same of a row of ShadowLimits.
struct ShadowRef {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t row = kNone;
  std::uint32_t generation = 0;

  bool operator==(const ShadowRef&) const = default;
};

// Where a request belongs.
struct Place {
  VirtualPfsId id;
  RuleRef rule;         // that sends it there
  ShadowRef shadow;     // the limits beside which it runs
  bool exempt = false;  // it is never held
};

}  // namespace vpfs::stage
