#pragma once

#include <string>

#include "tools/selftest/phase.h"

namespace vpfs::selftest {

// "1 MiB reads, 8 in flight, direct".
[[nodiscard]] std::string to_text(const Phase& phase);
// The same, and what was got.
[[nodiscard]] std::string to_text(const Measurement& measurement);

}  // namespace vpfs::selftest
