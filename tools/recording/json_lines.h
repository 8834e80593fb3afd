#pragma once

#include <istream>
#include <string>

#include "base/result.h"
#include "tools/recording/recording.h"

namespace vpfs::recording {

// A recording as JSON lines: one that says what it is, and then one for each request.
void write_json_lines(const Recording& recording, const Sink& sink);

// An error names the line of `file` and what was expected there: no recording, another version, a
// request that is not one, or an end in the middle.
[[nodiscard]] Result<Recording> read_json_lines(std::istream& in, const std::string& file);

}  // namespace vpfs::recording
