#pragma once

#include <cstddef>
#include <vector>

#include "control/wire/control.pb.h"

namespace vpfs::control {

// The label of what is summed up.
inline constexpr const char* kOthers = "(others)";

// What metrics say of the virtual PFSes of a stage.
struct Shown {
  std::vector<VirtualPfs> each;  // different names; "default" first, then the most active ones
  VirtualPfs others;             // sums of gauges
  std::size_t others_count = 0;
  VirtualPfs all;  // sums of counters, over those that were retired too
};
[[nodiscard]] Shown choose_shown(const StatsReply& stats, std::size_t most);

// The rules with the most hits, in their order. Each name is there once.
[[nodiscard]] std::vector<RuleState> choose_rules(const StatsReply& stats, std::size_t most);

}  // namespace vpfs::control
