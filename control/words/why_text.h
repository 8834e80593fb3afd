#pragma once

#include <string>

#include "base/result.h"
#include "control/words/site_past.h"

namespace vpfs::words {

// Why those that were asked about by `name` got what they got: an answer in words, then the
// numbers. An error: none of them did anything in that time.
[[nodiscard]] Result<std::string> why_text(const SitePast& past, const std::string& name);

}  // namespace vpfs::words
