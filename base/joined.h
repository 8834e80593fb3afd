#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace vpfs {

// What a range has, as text, with `between` between each two. Within a longer text, fmt::join does
// the same.
template <typename Range>
[[nodiscard]] std::string joined(const Range& parts, std::string_view between = ", ") {
  return fmt::format("{}", fmt::join(parts, between));
}

}  // namespace vpfs
