#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "control/wire/control.pb.h"
#include "stage/config/config.h"
#include "stage/rules/names.h"

namespace vpfs::plan {

struct RuleSetText {
  std::string file_name;  // for errors
  std::string text;
};

struct PlannedRules {
  stage::Config now;
  stage::Config then;
};

// What a stage runs with, and what it would run with after `rule apply` of this set, as the stage
// itself would read both. `names` outlives them. An error is in the set, or in what this program
// does not know of the stage.
[[nodiscard]] Result<PlannedRules> planned_rules(const control::InForceReply& in_force,
                                                 const RuleSetText& set, WallTime at,
                                                 const stage::Names& names);

}  // namespace vpfs::plan
