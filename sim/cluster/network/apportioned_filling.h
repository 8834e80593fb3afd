#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "sim/cluster/network/class_policy.h"
#include "sim/cluster/network/flow_table.h"
#include "sim/cluster/network/incremental_filling.h"
#include "sim/cluster/network/rate.h"

namespace vpfs::sim {

// Keeps rates as BA wants them (class_policy.h).
//
// Bottlenecks of one class depend on what the other takes, and that on the bottlenecks of this one.
// So the classes are filled in turn, round by round:
//
// - Communication has the room that storage of the last round leaves, or its share if that is more;
//   but no other room than before if that would not matter: if it is not much more or less (by
//   slack_of the capacity), or not used. The first round begins with what storage would leave if
//   classes did not count.
// - Storage has the room that communication of this round leaves, or its share if that is more.
//
// This ends when no other room matters. So rates are as precise as the slack. In the rare networks
// in which it goes round in circles it ends after kMostRounds. At last, storage is filled into what
// communication leaves, so that no link is over capacity. Only after kMostRounds may a class have
// less than its share of a link.
//
// Each round keeps its fillings, so that a change costs only what it reaches in each. The result
// depends on nothing but the flows.
class ApportionedFilling {
 public:
  static constexpr std::size_t kMostRounds = 16;
  [[nodiscard]] static constexpr Rate slack_of(Rate capacity) { return {capacity.units >> 10}; }

  // The shares of the classes are at least 1.
  ApportionedFilling(const FlowTable& table, std::uint32_t communication, std::uint32_t storage);

  // As of IncrementalFilling.
  void started(FlowSlot flow);
  void ended(FlowSlot flow);
  void refill();
  [[nodiscard]] Rate rate(FlowSlot flow) const;
  // Flows that may have another rate since the last refill().
  [[nodiscard]] std::span<const FlowSlot> changed() const { return changed_; }
  // How often kMostRounds were too few.
  [[nodiscard]] std::uint64_t unsettled() const { return unsettled_; }

 private:
  struct Round {
    explicit Round(const FlowTable& table);
    [[nodiscard]] IncrementalFilling& of(TrafficClass traffic_class);

    IncrementalFilling communication;
    IncrementalFilling storage;
    std::vector<std::uint8_t> matters;  // by link: whether the next round changes it
    std::size_t mattering = 0;          // links
  };

  void add_round();
  void fill(std::size_t round);
  void fit_storage(bool is_other_round);
  void update_first_round();
  void update_matters(Round& round, LinkId link);
  [[nodiscard]] Rate left_by_storage(const Round& round, LinkId link) const;
  [[nodiscard]] Rate next_room(const Round& round, LinkId link) const;

  const FlowTable& table_;
  std::vector<Rate> share_;  // of communication, by link
  // Further rounds than the one that was last are behind: they are refilled when they are needed.
  std::deque<Round> rounds_;
  std::size_t last_ = 0;
  IncrementalFilling equal_;  // of both classes
  IncrementalFilling fitted_storage_;
  std::vector<std::uint8_t> is_running_;  // by flow
  std::vector<FlowSlot> changed_;
  std::uint64_t unsettled_ = 0;
};

}  // namespace vpfs::sim
