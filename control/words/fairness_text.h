#pragma once

#include <string>

#include "control/words/site_past.h"

namespace vpfs::words {

// For each virtual PFS what it was entitled to, wanted and got, and Jain's index over all. What
// they had of the server is compared by cost, and shown in bytes.
[[nodiscard]] std::string fairness_text(const SitePast& past);

}  // namespace vpfs::words
