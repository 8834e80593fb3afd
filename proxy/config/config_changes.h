#pragma once

#include <string>
#include <vector>

#include "proxy/config/config.h"

namespace vpfs::proxy {

// What another configuration changes, one sentence for each setting, virtual PFS, rule and
// registered job: "scheduler.depth.requests 16 -> 32". Nothing if both do the same. See
// control::stage_changes().
//
// REQUIRES: parse_config() accepted both.
[[nodiscard]] std::vector<std::string> changes(const Config& before, const Config& after);

}  // namespace vpfs::proxy
