#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/cluster/network/class_policy.h"
#include "sim/cluster/network/rate.h"
#include "sim/cluster/network/topology.h"

namespace vpfs::sim {

// The place of a flow in tables. Places of removed flows are used again.
using FlowSlot = std::uint32_t;

// Which flows use which links. A flow with a rate cap has one more link, for itself, at the end of
// its route. Its number follows those of the network: links() + slot.
//
// Allocates nothing once it was as large as it gets. All operations take O(length of the route).
class FlowTable {
 public:
  // A flow on a link: `hop` is the link's place in its route.
  struct Use {
    FlowSlot flow = 0;
    std::uint32_t hop = 0;
  };

  explicit FlowTable(std::span<const BytesPerSecond> capacities);

  // A link that is passed twice counts twice.
  FlowSlot add(std::span<const LinkId> route, TrafficClass traffic_class,
               std::optional<BytesPerSecond> cap, bool may_rise = true);
  // REQUIRES: the flow is there.
  void remove(FlowSlot flow);

  // Links of the network, and with those of the flows.
  [[nodiscard]] std::size_t links() const { return links_; }
  [[nodiscard]] std::size_t all_links() const { return capacities_.size(); }
  [[nodiscard]] std::size_t slots() const { return flows_.size(); }

  [[nodiscard]] Rate capacity(LinkId link) const { return capacities_[link]; }
  // Holds until a flow is added.
  [[nodiscard]] std::span<const LinkId> route(FlowSlot flow) const {
    return {routes_.data() + flow * stride_, flows_[flow].hops};
  }
  [[nodiscard]] TrafficClass traffic_class(FlowSlot flow) const {
    return flows_[flow].traffic_class;
  }
  [[nodiscard]] bool may_rise(FlowSlot flow) const { return flows_[flow].may_rise; }
  // In no order that means anything. REQUIRES: the link is one of the network's.
  [[nodiscard]] std::span<const Use> users(LinkId link, TrafficClass traffic_class) const {
    return users_[link][static_cast<std::size_t>(traffic_class)];
  }
  // The only user of a flow's own link.
  [[nodiscard]] FlowSlot owner(LinkId link) const { return link - static_cast<LinkId>(links_); }

 private:
  struct Flow {
    std::uint32_t hops = 0;
    TrafficClass traffic_class = TrafficClass::communication;
    bool may_rise = true;
  };

  FlowSlot take_slot();
  void widen(std::size_t hops);

  std::size_t links_;
  std::vector<Rate> capacities_;  // of the network's links, then of the flows' own
  std::vector<Flow> flows_;
  std::vector<FlowSlot> free_;
  std::size_t stride_ = 8;  // places for each flow in the next two
  std::vector<LinkId> routes_;
  std::vector<std::uint32_t> places_;  // of each hop among the link's users
  std::vector<std::array<std::vector<Use>, kTrafficClasses>> users_;
};

}  // namespace vpfs::sim
