#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "tools/vpfsctl/answer.h"
#include "tools/vpfsctl/coordinator.h"
#include "tools/vpfsctl/settings.h"
#include "tools/vpfsctl/site.h"
#include "tools/vpfsctl/targets.h"

namespace vpfs::ctl {

// The time between two samples. The error is for the command line.
[[nodiscard]] Result<Duration> top_period(const Settings& settings);

// Shows rates until its count is reached or its user ends it: on a terminal a screen, else a table
// each period. REQUIRES: top_period() is good.
[[nodiscard]] ExitCode run_top(std::vector<Target> targets, SiteOptions options,
                               const Settings& settings, const control::Envelope& request,
                               const std::string& version);

// The same of the stages of a coordinator.
[[nodiscard]] ExitCode run_site_top(const control::PortAddress& coordinator, SiteOptions options,
                                    const Settings& settings, const control::Envelope& request,
                                    const std::string& version);

// One table, of two samples that are a second apart.
[[nodiscard]] ExitCode run_stat(Site& site, const Settings& settings,
                                const control::Envelope& request);
[[nodiscard]] ExitCode run_site_stat(Coordinator& coordinator, const Settings& settings,
                                     const control::Envelope& request);

}  // namespace vpfs::ctl
