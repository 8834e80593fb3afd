#pragma once

#include <string>
#include <vector>

#include "tools/vpfsctl/site/answer.h"

namespace vpfs::ctl {

// What a coordinator says of itself, its stages and its jobs. `json`: as its status has it; the
// text of another program says so.
[[nodiscard]] std::string coordinator_status_text(const std::string& json);

// The stages in it that are not connected, as answers that did not come.
[[nodiscard]] std::vector<ProxyAnswer> missing_stages(const std::string& json);

}  // namespace vpfs::ctl
