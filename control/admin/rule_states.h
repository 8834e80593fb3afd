#pragma once

#include <google/protobuf/repeated_field.h>

#include "control/admin/live_state.h"
#include "control/admin/stage_snapshot.h"
#include "control/wire/control.pb.h"

namespace vpfs::control {

// Adds all rules in the order in which they are tried, with what they have counted. `default` is
// the last one; rules that are not in force follow it.
void add_rules(google::protobuf::RepeatedPtrField<RuleState>& to, const LiveState& live,
               const std::vector<StageSnapshot::Rule>& counted);

[[nodiscard]] Difference to_message(const stage::Difference& difference);

}  // namespace vpfs::control
