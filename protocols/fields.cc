#include "protocols/fields.h"

#include <algorithm>

namespace vpfs {

std::string_view take_field_name(std::string_view& names) {
  std::size_t depth = 0;
  std::size_t end = 0;
  for (; end < names.size(); ++end) {
    if (names[end] == ',' && depth == 0) break;
    if (names[end] == '(') ++depth;
    if (names[end] == ')') --depth;
  }
  std::string_view name = names.substr(0, end);
  names.remove_prefix(std::min(end + 1, names.size()));
  while (names.starts_with(' ')) names.remove_prefix(1);
  if (name.starts_with("x.")) name.remove_prefix(2);
  return name;
}

std::string_view inside_wrapper(std::string_view name) {
  const std::size_t begin = name.find('(');
  const std::size_t end = name.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos) return name;
  return name.substr(begin + 1, end - begin - 1);
}

void append_quoted(std::string& text, std::string_view value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  text += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 0xf]};
    }
  }
  text += '"';
}

}  // namespace vpfs
