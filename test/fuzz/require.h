#pragma once

#include <string_view>

namespace vpfs::test {

// Ends the program, with `what` as the reason, when a property does not hold: that is how a fuzz
// target reports what it has found.
void require(bool holds, std::string_view what);

}  // namespace vpfs::test
