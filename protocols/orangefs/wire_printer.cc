#include "protocols/orangefs/wire_printer.h"

#include <algorithm>

namespace vpfs::orangefs {

std::string_view WirePrinter::next_name(std::string_view& names) {
  std::size_t depth = 0;
  std::size_t end = 0;
  for (; end < names.size(); ++end) {
    if (names[end] == ',' && depth == 0) break;
    if (names[end] == '(') ++depth;
    if (names[end] == ')') --depth;
  }
  const std::string_view name = names.substr(0, end);
  names.remove_prefix(std::min(end + 1, names.size()));
  while (names.starts_with(' ')) names.remove_prefix(1);
  return name;
}

std::string_view WirePrinter::inside(std::string_view name) {
  const std::size_t begin = name.find('(');
  const std::size_t end = name.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos) return name;
  return name.substr(begin + 1, end - begin - 1);
}

void WirePrinter::begin(std::string_view name) {
  if (!text_.empty() && text_.back() != '[' && text_.back() != '{') text_ += ' ';
  if (name.starts_with("x.")) name.remove_prefix(2);
  if (!name.empty()) text_.append(name).append("=");
}

void WirePrinter::open(char bracket) {
  text_ += bracket;
}
void WirePrinter::close(char bracket) {
  text_ += bracket;
}

void WirePrinter::show(const std::string& value) {
  text_ += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text_ += {'\\', c};
    } else if (byte >= 0x20 && byte < 0x7f) {
      text_ += c;
    } else {
      constexpr std::string_view kDigits = "0123456789abcdef";
      text_ += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 0xf]};
    }
  }
  text_ += '"';
}

void WirePrinter::show(const std::vector<std::byte>& value) {
  text_ += "<" + std::to_string(value.size()) + " bytes>";
}

}  // namespace vpfs::orangefs
