#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A configuration that is in several files, as one text: that of the main file, and behind it each
// other one below a line with its name, "--- # file: PATH".
namespace vpfs {

struct ConfigPart {
  std::string file;    // "" for the main file
  int first_line = 1;  // in the whole text
  std::string_view text;
};

inline constexpr std::string_view kPartBegin = "--- # file: ";

// Where the next line begins that names a file, from `at` on, which is a beginning of a line.
inline std::size_t next_part(std::string_view text, std::size_t at) {
  while (at < text.size() && !text.substr(at).starts_with(kPartBegin)) {
    const std::size_t end = text.find('\n', at);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  return std::min(at, text.size());
}

// The main file first. A text without other files is one part.
[[nodiscard]] inline std::vector<ConfigPart> parts_of(std::string_view text) {
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
    part.file = text.substr(end + kPartBegin.size(), line_end - end - kPartBegin.size());
    begin = std::min(line_end + 1, text.size());
  }
}

// Adds a file. REQUIRES: it has no line_of_part(), and its name has no line break.
inline void add_part(std::string& text, std::string_view file, std::string_view part) {
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  text += kPartBegin;
  text += file;
  text += '\n';
  text += part;
}

// The first line that would be taken for the beginning of another file. Nothing: there is none.
[[nodiscard]] inline std::optional<int> line_of_part(std::string_view text) {
  const std::size_t at = next_part(text, 0);
  if (at == text.size()) return std::nullopt;
  return static_cast<int>(std::ranges::count(text.substr(0, at), '\n')) + 1;
}

}  // namespace vpfs
