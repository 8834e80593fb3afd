#pragma once

#include "tools/vpfsctl/ctl_settings.h"
#include "tools/vpfsctl/failures.h"
#include "tools/vpfsctl/site/answer.h"
#include "tools/vpfsctl/site/asked_proxies.h"

namespace vpfs::ctl {

// Tests one proxy and its data server with a load of its own, or removes what a killed one left.
[[nodiscard]] ExitCode run_selftest(const CtlSettings& settings, AskedProxies& proxies,
                                    const Failures& failed);

}  // namespace vpfs::ctl
