#pragma once

#include <string>

#include "control/admin/live_state.h"
#include "control/coordinator/config/config.h"
#include "control/site/site_numbers.h"
#include "control/wire/control.pb.h"

namespace vpfs::coordinator {

// The coordinator's state as JSON. docs/admin/numbers.md explains every field.
[[nodiscard]] std::string status_json(const SiteNumbers& numbers, const Config& config,
                                      const control::LiveState& live);

// The same as a stage would tell it: jobs as virtual PFSes, and with `rules` the live rules.
[[nodiscard]] control::StatsReply stats_of(const SiteNumbers& numbers,
                                           const control::LiveState& live, bool rules);

}  // namespace vpfs::coordinator
