#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/network/class_policy.h"
#include "sim/cluster/network/rate.h"
#include "sim/cluster/network/topology.h"

namespace vpfs::sim {

// A flow with the rate that it was allotted.
struct AllottedFlow {
  std::vector<LinkId> route;
  TrafficClass traffic_class = TrafficClass::communication;
  std::optional<BytesPerSecond> cap;
  Rate rate;
};

// What contradicts the definition of the policy (class_policy.h), up to the rounding that
// incremental_filling.h and, for BA, apportioned_filling.h states. Empty: nothing.
[[nodiscard]] std::string why_unfair(const std::vector<BytesPerSecond>& capacities,
                                     const ClassPolicy& policy,
                                     const std::vector<AllottedFlow>& flows);
// What is over its capacity. Empty: nothing.
[[nodiscard]] std::string what_is_over_capacity(const std::vector<BytesPerSecond>& capacities,
                                                const std::vector<AllottedFlow>& flows);

// The same rates as Allocation gives, to the unit: all of them from scratch, by looking for the
// lowest link again and again.
[[nodiscard]] std::vector<Rate> rates_from_scratch(const std::vector<BytesPerSecond>& capacities,
                                                   const ClassPolicy& policy,
                                                   const std::vector<AllottedFlow>& flows);

}  // namespace vpfs::sim
