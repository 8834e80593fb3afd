#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "tools/load/settings.h"

namespace vpfs::load {

// Removes the files that a run with these settings has left, if there are any.
[[nodiscard]] Result<void> remove_files(const LoadSettings& settings, const Clock& clock);

}  // namespace vpfs::load
