#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/network/class_policy.h"
#include "sim/cluster/network/flow_table.h"
#include "sim/cluster/network/link_set.h"
#include "sim/cluster/network/rate.h"

namespace vpfs::sim {

// Keeps rates as Sharing::equal and Sharing::study want them (class_policy.h). A change costs what
// it reaches: the flows on the links of flows that came or went.
class EqualShares {
 public:
  // The table outlives it.
  EqualShares(const FlowTable& table, ClassPolicy policy);

  // As of IncrementalFilling.
  void started(FlowSlot flow);
  void ended(FlowSlot flow);
  void refill();
  [[nodiscard]] Rate rate(FlowSlot flow) const { return rates_[flow]; }
  // Flows that have another rate since the last refill().
  [[nodiscard]] std::span<const FlowSlot> changed() const { return changed_; }

 private:
  [[nodiscard]] Rate part_of(LinkId link, TrafficClass traffic_class) const;
  [[nodiscard]] bool is_unbounded(std::uint64_t communication, bool is_storage) const;
  void update(FlowSlot flow);

  const FlowTable& table_;
  ClassPolicy policy_;
  std::vector<Rate> rates_;             // by flow
  std::vector<std::uint64_t> updated_;  // by flow: the refill that looked at it last
  std::uint64_t refills_ = 0;
  LinkSet changed_links_;          // of the network
  std::vector<FlowSlot> started_;  // since the last refill()
  std::vector<FlowSlot> changed_;
};

}  // namespace vpfs::sim
