#include "base/config_parts.h"

#include <algorithm>

namespace vpfs {
namespace {

constexpr std::string_view kBegin = "--- # file: ";

// Where the next line begins that names a file, from `at` on, which is a beginning of a line.
std::size_t next_part(std::string_view text, std::size_t at) {
  while (at < text.size() && !text.substr(at).starts_with(kBegin)) {
    const std::size_t end = text.find('\n', at);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  return std::min(at, text.size());
}

}  // namespace

std::vector<ConfigPart> parts_of(std::string_view text) {
  std::vector<ConfigPart> parts;
  ConfigPart part;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = next_part(text, begin);
    part.text = text.substr(begin, end - begin);
    parts.push_back(part);
    if (end == text.size()) return parts;
    const std::size_t line_end = std::min(text.find('\n', end), text.size());
    part.first_line += static_cast<int>(std::ranges::count(part.text, '\n')) + 1;
    part.file = text.substr(end + kBegin.size(), line_end - end - kBegin.size());
    begin = std::min(line_end + 1, text.size());
  }
}

void add_part(std::string& text, std::string_view file, std::string_view part) {
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  text += kBegin;
  text += file;
  text += '\n';
  text += part;
}

std::optional<int> line_of_part(std::string_view text) {
  const std::size_t at = next_part(text, 0);
  if (at == text.size()) return std::nullopt;
  return static_cast<int>(std::ranges::count(text.substr(0, at), '\n')) + 1;
}

}  // namespace vpfs
