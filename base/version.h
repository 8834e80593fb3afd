#pragma once

#include <string_view>

namespace vpfs {

// "0.1.0 (1a2b3c4d5e6f)": the version and the commit that was built, with "-dirty" behind it where
// files were changed; without the commit where nothing tells it.
[[nodiscard]] std::string_view version();

}  // namespace vpfs
