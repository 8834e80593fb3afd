#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "tools/vpfsctl/site/answer.h"
#include "tools/vpfsctl/site/asked_proxies.h"
#include "tools/vpfsctl/site/coordinator_client.h"
#include "tools/vpfsctl/site/targets.h"
#include "tools/vpfsctl/top/top_view.h"

namespace vpfs::ctl {

// The time between two samples. The error is for the command line.
[[nodiscard]] Result<Duration> top_period(const TopSettings& settings);

// Shows rates until its count is reached or its user ends it: on a terminal a screen, else a table
// each period. REQUIRES: top_period() is good.
[[nodiscard]] ExitCode run_top(std::vector<Target> targets, SiteOptions options,
                               const TopSettings& settings, const control::Envelope& request,
                               const std::string& version);

// The same of the stages of a coordinator.
[[nodiscard]] ExitCode run_site_top(const std::vector<control::PortAddress>& coordinators,
                                    SiteOptions options, const TopSettings& settings,
                                    const std::vector<std::string>& stages,
                                    const control::Envelope& request, const std::string& version);

// One table, of two samples that are a second apart.
[[nodiscard]] ExitCode run_stat(AskedProxies& proxies, const TopSettings& settings,
                                const control::Envelope& request);
[[nodiscard]] ExitCode run_site_stat(CoordinatorClient& coordinator, const TopSettings& settings,
                                     const std::vector<std::string>& stages,
                                     const control::Envelope& request);

}  // namespace vpfs::ctl
