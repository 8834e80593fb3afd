#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vpfs::output {

// A file that the command line asks for.
struct Output {
  std::string option;  // "--json"
  std::string path;    // "": it is not asked for
};

// Which outputs would replace a file that is read, or another output, by whatever name; a line for
// each. "": none.
[[nodiscard]] std::string problem_of(const std::vector<Output>& outputs,
                                     const std::vector<std::string>& inputs);

// A text as an OutputFile. Errors name the path.
[[nodiscard]] Result<void> write_whole(const std::string& path, std::string_view text);

}  // namespace vpfs::output
