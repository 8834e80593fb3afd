#pragma once

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

// The main file first. A text without other files is one part.
[[nodiscard]] std::vector<ConfigPart> parts_of(std::string_view text);

// Adds a file. REQUIRES: it has no line_of_part(), and its name has no line break.
void add_part(std::string& text, std::string_view file, std::string_view part);
// The first line that would be taken for the beginning of another file. Nothing: there is none.
[[nodiscard]] std::optional<int> line_of_part(std::string_view text);

}  // namespace vpfs
