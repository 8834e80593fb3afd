#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "schedulers/policy_kind.h"
#include "schedulers/share.h"

namespace vpfs::sim {

// What the configuration promises a virtual PFS, on all servers that it uses.
struct Promise {
  std::uint64_t weight = 1;
  std::uint64_t rank = 0;                             // lower ranks get `least` first
  BytesPerSecond least = {};                          // before weights count
  std::optional<BytesPerSecond> most = std::nullopt;  // never more

  bool operator==(const Promise&) const = default;
};

// What a policy makes of a share, on so many servers. Limits in operations are not counted.
[[nodiscard]] Promise promise_of(const PolicyKind& policy, const Share& share,
                                 std::uint64_t servers);

// Divides what was moved in a time among those that asked for something: each has its weight's
// part, but at least `least` and not more than `most`. If there is too little for the least rates,
// lower ranks go first, and a rank divides the rest in proportion. If all have the most, some of
// `moved` is left.
[[nodiscard]] std::vector<Bytes> entitled(std::span<const Promise> promises, Bytes moved,
                                          Duration time);

}  // namespace vpfs::sim
