#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/cluster/network/apportioned_filling.h"
#include "sim/cluster/network/class_policy.h"
#include "sim/cluster/network/equal_shares.h"
#include "sim/cluster/network/flow_table.h"
#include "sim/cluster/network/incremental_filling.h"
#include "sim/cluster/network/rate.h"

namespace vpfs::sim {

// Keeps flows' rates as the policy says (class_policy.h), up to rounding (incremental_filling.h)
// and, with BA, a slack (apportioned_filling.h). Only what a change reaches is computed anew. The
// rates are the same, to the unit, as if all flows were allotted anew.
class Allocation {
 public:
  Allocation(const FlowTable& table, ClassPolicy policy);

  // A flow was added to the table.
  void started(FlowSlot flow);
  // A flow is about to be removed from the table.
  void ended(FlowSlot flow);
  // Allots anew what changed. Returns flows that may have another rate now, each once.
  [[nodiscard]] std::span<const FlowSlot> settle();
  // As of the last settle().
  [[nodiscard]] Rate rate(FlowSlot flow) const;
  // With BA: how often classes may have missed their shares.
  [[nodiscard]] std::uint64_t unsettled() const {
    return apportioned_ ? apportioned_->unsettled() : 0;
  }

 private:
  [[nodiscard]] std::size_t filling_of(FlowSlot flow) const;

  const FlowTable& table_;
  std::vector<IncrementalFilling> fillings_;       // NP: of both classes; FP: of each class
  std::optional<ApportionedFilling> apportioned_;  // BA
  std::optional<EqualShares> equal_;  // Sharing::equal and study, whatever the policy is
  std::vector<FlowSlot> changed_;
};

}  // namespace vpfs::sim
