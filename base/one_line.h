#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vpfs {

// With control characters escaped, so that a message stays one line whatever it quotes.
[[nodiscard]] std::string one_line(std::string_view text);

// Text from another program, for logs and reports: at most `most` bytes of it, and then "...".
[[nodiscard]] std::string one_short_line(std::string_view text, std::size_t most = 500);

}  // namespace vpfs
