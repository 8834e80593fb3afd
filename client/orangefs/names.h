#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace vpfs::client {

// The protocol's limits, without the closing NUL (docs/wire-orangefs.md section 2).
inline constexpr std::size_t kLongestName = 255;
inline constexpr std::size_t kLongestLinkTarget = 4095;

// Whether `name` may be that of a directory entry. ENAMETOOLONG, or EINVAL: it is empty, "." or
// "..", or has a '/' or a NUL.
[[nodiscard]] Result<void> check_name(std::string_view name);
// The same for an object to be made: "." and ".." exist already, EEXIST.
[[nodiscard]] Result<void> check_new_name(std::string_view name);
// ENAMETOOLONG, ENOENT if it is empty (OrangeFS cannot keep such a link), or EINVAL for a NUL.
[[nodiscard]] Result<void> check_link_target(std::string_view target);

}  // namespace vpfs::client
