#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stage/book/live_rules.h"

namespace vpfs::stage {

struct Difference {
  enum class Kind : std::uint8_t { added, removed, changed, moved };

  std::string name;
  Kind kind;
  // As lines of a list; of a moved rule with its place, "#3 ...".
  std::string before;  // "" if it is added
  std::string after;   // "" if it is removed

  bool operator==(const Difference&) const = default;
};

[[nodiscard]] std::string_view name_of(Difference::Kind kind);

// What must be done to the one set to get the other: removals first, then the rest in the order of
// `after`. As few rules as possible are called moved.
[[nodiscard]] std::vector<Difference> differences(const LiveSet& before, const LiveSet& after);

// "backup client=10.0.0.0/8 rate=100MiB/s, until 2026-11-22 12:00:00 UTC".
[[nodiscard]] std::string line_of(const LiveRule& rule);
// "default: weight=4".
[[nodiscard]] std::string line_of(const LiveShare& share);

}  // namespace vpfs::stage
