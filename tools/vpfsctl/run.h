#pragma once

#include <string>

#include "tools/vpfsctl/ctl_settings.h"
#include "tools/vpfsctl/site/answer.h"

namespace vpfs::ctl {

// Does what the command line says: reads files, asks proxies, prints.
[[nodiscard]] ExitCode run(const CtlSettings& settings, const std::string& version);

}  // namespace vpfs::ctl
