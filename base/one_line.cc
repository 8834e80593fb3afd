#include "base/one_line.h"

#include <fmt/format.h>

#include "base/utf8.h"

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
  return one_line(utf8_prefix(text, most)) + "...";
}

}  // namespace vpfs
