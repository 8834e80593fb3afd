#include "base/one_line.h"

#include <fmt/format.h>

namespace vpfs {

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (code < 0x20 || code == 0x7f) {
      line += fmt::format("\\x{:02x}", code);
    } else {
      line += c;
    }
  }
  return line;
}

std::string one_short_line(std::string_view text, std::size_t most) {
  if (text.size() <= most) return one_line(text);
  // A character of UTF-8 stays whole.
  const auto goes_on = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  while (most > 0 && goes_on(most)) --most;
  return one_line(text.substr(0, most)) + "...";
}

}  // namespace vpfs
