#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "tools/vpfsctl/answer.h"
#include "tools/vpfsctl/settings.h"
#include "tools/vpfsctl/site.h"
#include "tools/vpfsctl/targets.h"

namespace vpfs::ctl {

// Shows rates until its count is reached or its user ends it: on a terminal a screen, else a table
// each period.
[[nodiscard]] ExitCode run_top(std::vector<Target> targets, SiteOptions options,
                               const Settings& settings, const control::Envelope& request,
                               const std::string& version);

// One table, of two samples that are a second apart.
[[nodiscard]] ExitCode run_stat(Site& site, const Settings& settings,
                                const control::Envelope& request);

}  // namespace vpfs::ctl
