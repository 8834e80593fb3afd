#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "load/report.h"
#include "load/settings.h"

namespace vpfs::load {

// Runs all applications of `settings`. `live`, if set, is called once a second with a line to show.
// An error means that the run could not begin.
[[nodiscard]] Result<RunResult> run(const LoadSettings& settings, const Clock& clock,
                                    const std::function<void(const std::string&)>& live);

}  // namespace vpfs::load
