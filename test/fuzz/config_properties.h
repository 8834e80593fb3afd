#pragma once

#include <string>
#include <string_view>

#include "base/config_reader.h"
#include "test/fuzz/require.h"

namespace vpfs::test {

// Every message of a configuration's reader begins with "FILE:LINE: ".
inline void check_messages(const ConfigErrors& errors, std::string_view file) {
  for (const auto* lines : {&errors.lines(), &errors.warnings()}) {
    for (const std::string& line : *lines) {
      const std::string_view rest =
          line.starts_with(file) ? std::string_view(line).substr(file.size()) : "";
      const std::size_t digits = rest.find_first_not_of("0123456789", 1);
      require(rest.starts_with(':') && digits > 1 && digits != std::string_view::npos &&
                  rest.substr(digits).starts_with(": "),
              "a message without its place: " + line);
      require(line.find_first_of("\n\r\x1b") == std::string::npos, "a message of several lines");
    }
  }
}

// Reads a text with `parse`, which has to tell the same twice.
template <typename Parse>
void check_config(std::string_view text, Parse parse) {
  ConfigErrors errors("f.yaml");
  parse(text, errors);
  check_messages(errors, "f.yaml");
  ConfigErrors again("f.yaml");
  parse(text, again);
  require(errors.lines() == again.lines(), "reads the same text in two ways");
}

}  // namespace vpfs::test
