#pragma once

#include <string>

#include "tools/vpfsctl/settings.h"
#include "tools/vpfsctl/site/answer.h"

namespace vpfs::ctl {

// Does what the command line says: reads files, asks proxies, prints.
[[nodiscard]] ExitCode run(const Settings& settings, const std::string& version);

}  // namespace vpfs::ctl
