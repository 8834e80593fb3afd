#pragma once

#include <string>

namespace vpfs::test {

// `text` with every `what` replaced.
[[nodiscard]] inline std::string replaced(std::string text, const std::string& what,
                                          const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

}  // namespace vpfs::test
