#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vpfs {

// Bytes of the UTF-8 character that the text begins with; 0 if it begins with none. REQUIRES: it is
// not empty.
[[nodiscard]] std::size_t utf8_character(std::string_view text);

// The text with U+FFFD for each byte that is not part of valid UTF-8, as JSON and control messages
// need it: names come from clients, which may put any bytes into them.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace vpfs
