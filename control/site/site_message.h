#pragma once

#include <string>

#include "control/admin/live_state.h"
#include "control/wire/control.pb.h"
#include "stage/config/config.h"
#include "stage/rules/names.h"

namespace vpfs::coordinator {

// What a coordinator's rules are read against: a stage that shows every attribute and has every
// policy. A real stage leaves out what it cannot do, and says so. `names` outlives it.
[[nodiscard]] stage::Config site_grammar(const stage::Names* names);

// The live rules and jobs as stages get them. The words for totals stay here.
[[nodiscard]] control::Site to_site(const control::LiveState& live, const std::string& origin);

}  // namespace vpfs::coordinator
