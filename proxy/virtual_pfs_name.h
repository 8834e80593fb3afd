#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace vpfs::proxy {

// In bytes, of the names that templates make.
inline constexpr std::size_t kLongestName = 128;

// Whether a name that was filled in from what a request says may become a virtual PFS's, which is
// then kept, logged and written to the status for good: 1 to kLongestName bytes, all of them
// printable ASCII (space to ~). Anybody may say anything in a request.
[[nodiscard]] inline bool is_good_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::ranges::all_of(name, [](char each) { return each >= ' ' && each <= '~'; });
}

}  // namespace vpfs::proxy
