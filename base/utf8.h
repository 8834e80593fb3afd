#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vpfs {

// Bytes of the UTF-8 character that the text begins with; 0 if it begins with none. REQUIRES: it is
// not empty.
[[nodiscard]] std::size_t utf8_character(std::string_view text);

// Whether a character may begin with this byte, so that a text can be cut before it.
[[nodiscard]] constexpr bool begins_utf8_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

// At most the first `most` bytes of the text, without a part of a character at the end.
[[nodiscard]] std::string_view utf8_prefix(std::string_view text, std::size_t most);

// The text with U+FFFD for each byte that is not part of valid UTF-8, as JSON and control messages
// need it: names come from clients, which may put any bytes into them.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace vpfs
