#pragma once

#include <string>
#include <vector>

#include "stage/config/config.h"

namespace vpfs::control {

// What another configuration changes of the settings of the policy, virtual PFSes, registered jobs
// and rules, one sentence for each. Nothing if both do the same.
//
// Rules are told apart by their names. Those that have none, or only their place ("rules[3]"), are
// told apart by what they do.
//
// REQUIRES: both were read without errors.
[[nodiscard]] std::vector<std::string> stage_changes(const stage::Config& before,
                                                     const stage::Config& after);

}  // namespace vpfs::control
