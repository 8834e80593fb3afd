#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/class_policy.h"
#include "sim/network/flow_table.h"
#include "sim/network/rate.h"
#include "sim/network/water_filling.h"

namespace vpfs::sim {

// Keeps flows' rates as the policy says (class_policy.h), up to rounding (water_filling.h). Only
// what a change can reach is computed anew: flows that share links, directly or through others,
// with a flow that started or ended. The result is the same as if all flows were allotted anew.
//
// With BA, bottlenecks of one class depend on what the other takes, and that on the bottlenecks of
// this one. So the classes are filled in turn, at first as if storage pressed wherever it has a
// flow, until a turn changes no link's room that matters by more than slack_of(its capacity): so
// precise are rates. Mostly two turns do. In the rare networks in which this goes round in circles
// it ends after kMostRounds. Then no link is over capacity, and storage has what communication
// leaves, but a class may have less than its share of a link.
class Allocation {
 public:
  static constexpr int kMostRounds = 16;
  [[nodiscard]] static constexpr Rate slack_of(Rate capacity) { return {capacity.units >> 12}; }

  Allocation(const FlowTable& table, ClassPolicy policy);

  // A flow was added to the table.
  void started(FlowSlot flow);
  // A flow is about to be removed from the table. REQUIRES: settle() was called since it started.
  void ended(FlowSlot flow);
  // Allots anew what changed. Returns the flows that may have another rate now, each once.
  [[nodiscard]] std::span<const FlowSlot> settle();
  // As of the last settle().
  [[nodiscard]] Rate rate(FlowSlot flow) const { return filling_.rate(flow); }
  // How often kMostRounds were too few.
  [[nodiscard]] std::uint64_t unsettled() const { return unsettled_; }

 private:
  // A set of links, in the order in which they were added.
  class LinkSet {
   public:
    void grow(std::size_t links) { is_in_.resize(links); }
    void add(LinkId link);
    void clear();
    [[nodiscard]] std::span<const LinkId> all() const { return all_; }
    [[nodiscard]] std::size_t size() const { return all_.size(); }

   private:
    std::vector<LinkId> all_;
    std::vector<std::uint8_t> is_in_;
  };
  void grow();
  [[nodiscard]] LinkSet& touched(FlowSlot flow);
  // Finds what hangs together with a link through flows of these classes: adds it to links_ and
  // collected_.
  void collect(LinkId link, std::span<const TrafficClass> classes);
  void collect(FlowSlot flow);
  void settle_equally();
  void settle_by_priority();
  void settle_in_shares();
  // What collect() found since `first` of collected_, in turn. False: kMostRounds were too few.
  [[nodiscard]] bool fill_in_turn(std::size_t first);
  void fill_communication();
  void fill_storage();
  // The room that storage leaves to communication. False: that is what it has, wherever it matters.
  [[nodiscard]] bool update_room();
  void fit_storage();

  const FlowTable& table_;
  ClassPolicy policy_;
  WaterFilling filling_;
  std::array<LinkSet, kTrafficClasses> touched_;  // by the class of the flow
  // What collect() found.
  LinkSet links_;
  std::vector<FlowSlot> collected_;
  std::vector<std::uint8_t> is_collected_;  // by flow
  // What communication uses of each link; of any flow with FP, of links_ with BA.
  std::vector<Rate> communication_;
  // BA, by link.
  struct Turn {
    Rate share;    // of communication
    Rate room;     // for communication, in this round
    Rate storage;  // what storage uses
    bool limits_communication = false;
  };
  std::vector<Turn> turns_;
  std::array<std::vector<FlowSlot>, kTrafficClasses> flows_;
  std::uint64_t unsettled_ = 0;
};

}  // namespace vpfs::sim
