#pragma once

#include <string>

#include "control/words/site_past.h"

namespace vpfs::words {

// What held a virtual PFS for most of the time, and what would help, in a sentence or two.
// REQUIRES: it is one of past.virtual_pfs.
[[nodiscard]] std::string reason_text(const SitePast& past, const control::PastOf& who);

}  // namespace vpfs::words
