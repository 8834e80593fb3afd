#pragma once

#include <optional>

#include "base/clock.h"
#include "control/coordinator/config/config.h"

namespace vpfs::coordinator {

// When the first of the certificates ends that a coordinator with this configuration uses; nothing:
// it has none, or none can be read.
[[nodiscard]] std::optional<WallTime> first_certificate_end(const Config& config);

}  // namespace vpfs::coordinator
