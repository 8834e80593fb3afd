#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "tools/load/report.h"
#include "tools/load/settings.h"

namespace vpfs::load {

// Runs all applications of `settings`. `live`, if set, is called with a line to show when the run
// begins, and with one for each second that is measured.
// SIGINT or SIGTERM ends a run that has begun before its time: requests under way are finished,
// what was written is verified, and the result is that of the shorter run.
// With `until_done`, so does the end of the last process, which is not called early.
// An error means that the run could not begin.
[[nodiscard]] Result<RunResult> run(const LoadSettings& settings, const Clock& clock,
                                    const std::function<void(const std::string&)>& live);

}  // namespace vpfs::load
