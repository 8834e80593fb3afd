#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vpfs {

// The standard alphabet of RFC 4648, section 4, with padding.
[[nodiscard]] std::string to_base64(std::string_view bytes);
// Takes what to_base64() gives, and nothing else: no white space, no text without its padding, and
// no bits that are left over.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace vpfs
