#pragma once

#include <string>
#include <string_view>

namespace vpfs {

// The text with U+FFFD for each byte that is no part of valid UTF-8, as JSON and control messages
// need it: names come from clients, who may put any bytes into them.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace vpfs
