#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/flow_table.h"
#include "sim/network/rate.h"

namespace vpfs::sim {

// Max-min fair rates by progressive filling (Bertsekas and Gallager, "Data Networks", 1992, section
// 6.5.2). Again and again, the link whose remaining room gives its remaining flows least is full:
// these flows get an equal part of that room, rounded down to a unit.
//
// Rounding leaves less than one unit for each flow of a full link. Equally low links are filled in
// the order of their numbers. So rates depend on nothing but the flows and the rooms, and flows
// that share no link, directly or through others, do not change each other's.
class WaterFilling {
 public:
  explicit WaterFilling(const FlowTable& table) : table_(table) {}

  // What a link has for the flows of the next fill().
  void set_room(LinkId link, Rate room) { links_[link].room = room.units; }
  // Needs rooms of these links; they are all that the flows use.
  void fill(std::span<const FlowSlot> flows, std::span<const LinkId> links);

  // Of the flows of any fill() so far.
  [[nodiscard]] Rate rate(FlowSlot flow) const { return flows_[flow].rate; }
  // What the last fill() left of a link's room, and how many hops of its flows were on the link.
  [[nodiscard]] Rate left(LinkId link) const { return {links_[link].room}; }
  [[nodiscard]] std::uint32_t hops(LinkId link) const { return links_[link].hops; }

  // To be called before the first fill() after a flow was added.
  void grow();

 private:
  struct LinkState {
    std::uint64_t room = 0;
    std::uint32_t hops = 0;     // of all flows
    std::uint32_t waiting = 0;  // of flows without a rate
  };
  struct FlowState {
    Rate rate;
    bool is_waiting = false;
  };
  // A link's level: what each waiting flow would get. Levels only rise, so an old one is a bound.
  struct Level {
    std::uint64_t units = 0;
    LinkId link = 0;

    auto operator<=>(const Level&) const = default;
  };

  void build_heap();
  void sift_down(std::size_t place);
  void drop_lowest();
  void freeze_flows(Level level);
  void freeze(FlowSlot flow, std::uint64_t level);

  const FlowTable& table_;
  std::vector<LinkState> links_;
  std::vector<FlowState> flows_;
  std::vector<Level> heap_;
  std::size_t waiting_ = 0;  // flows
};

}  // namespace vpfs::sim
