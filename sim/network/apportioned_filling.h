#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/class_policy.h"
#include "sim/network/flow_table.h"
#include "sim/network/link_set.h"
#include "sim/network/rate.h"
#include "sim/network/water_filling.h"

namespace vpfs::sim {

// Keeps rates as BA wants them (class_policy.h). Only what a change can reach is computed anew:
// flows that share links, directly or through others, with a flow that started or ended. The result
// is the same as if all flows were allotted anew.
//
// Bottlenecks of one class depend on what the other takes, and that on the bottlenecks of this one.
// So the classes are filled in turn, at first as if storage pressed wherever it has a flow, until a
// turn changes no link's room that matters by more than slack_of(its capacity): so precise are
// rates. Mostly two turns do. In the rare networks in which this goes round in circles it ends
// after kMostRounds. Then no link is over capacity, and storage has what communication leaves, but
// a class may have less than its share of a link.
class ApportionedFilling {
 public:
  static constexpr int kMostRounds = 16;
  [[nodiscard]] static constexpr Rate slack_of(Rate capacity) { return {capacity.units >> 12}; }

  // The shares of the classes are at least 1.
  ApportionedFilling(const FlowTable& table, std::uint32_t communication, std::uint32_t storage);

  // As of IncrementalFilling; but refill() returns flows that may have another rate.
  void started(FlowSlot flow);
  void ended(FlowSlot flow);
  [[nodiscard]] std::span<const FlowSlot> refill();
  [[nodiscard]] Rate rate(FlowSlot flow) const { return filling_.rate(flow); }
  // How often kMostRounds were too few.
  [[nodiscard]] std::uint64_t unsettled() const { return unsettled_; }

 private:
  struct LinkState {
    Rate share;          // of communication
    Rate communication;  // what it uses
    Rate storage;
    Rate room;  // for communication, in this round
    bool limits_communication = false;
  };

  void grow();
  // Finds what hangs together with a link: adds it to links_ and collected_.
  void collect(LinkId link);
  void collect_flow(FlowSlot flow);
  // What collect() found since `first` of collected_. False: kMostRounds were too few.
  [[nodiscard]] bool fill_in_turn(std::size_t first);
  void fill_communication();
  void fill_storage();
  // The room that storage leaves to communication. False: it has that, wherever it matters.
  [[nodiscard]] bool update_room();
  void fit_storage();

  const FlowTable& table_;
  WaterFilling filling_;
  LinkSet touched_;
  LinkSet links_;
  std::vector<FlowSlot> collected_;
  std::vector<std::uint8_t> is_collected_;  // by flow
  std::array<std::vector<FlowSlot>, kTrafficClasses> flows_;
  std::vector<LinkState> states_;
  std::uint64_t unsettled_ = 0;
};

}  // namespace vpfs::sim
