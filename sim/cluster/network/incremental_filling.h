#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/wide.h"
#include "sim/cluster/network/flow_table.h"
#include "sim/cluster/network/link_set.h"
#include "sim/cluster/network/rate.h"

namespace vpfs::sim {

// Max-min fair rates by progressive filling (Bertsekas and Gallager, "Data Networks", 1992, section
// 6.5.2), kept while flows come and go and rooms of links change.
//
// A filling is a sequence of steps. At each, the link is full whose remaining room gives its
// waiting flows least, the first of equal ones. These flows get an equal part of that room, its
// level, rounded down to a unit of Rate. So a full link has less than one unit left for each of its
// flows, and the rates depend on nothing but the flows and the rooms.
//
// Levels rise from step to step, so a flow's rate and bottleneck say at which step it got them.
// refill() repeats the sequence, but looks only at what differs from the last time:
//
// - A link is touched if its room or its flows changed, or once one of its flows gets its rate at
//   another step than before. Touched links are followed step by step.
// - Other links are full at the same step as before, or never. So flows on touched links whose old
//   bottleneck is not touched get their old rate at their old step.
// - If a touched link is not full at its old step, flows that it held back there go on waiting.
// That
//   touches all their links.
//
// So the cost is that of the flows on links of flows that change. In a large network these are few,
// though nearly all flows are connected through others.
class IncrementalFilling {
 public:
  // Fills the links with the flows of `table`. Table and classes outlive it. Rooms are the
  // capacities at first.
  IncrementalFilling(const FlowTable& table, std::span<const TrafficClass> classes);

  // A flow was added to the table.
  void started(FlowSlot flow);
  // A flow is about to be removed.
  void ended(FlowSlot flow);
  void set_room(LinkId link, Rate room);
  void refill();

  // As of the last refill().
  [[nodiscard]] Rate rate(FlowSlot flow) const { return {flows_[flow].step.units()}; }
  // What flows use of a link.
  [[nodiscard]] Rate used(LinkId link) const { return {links_[link].used}; }
  [[nodiscard]] Rate room(LinkId link) const { return {links_[link].room}; }
  // What the last refill() changed: flows' rates, and no more than what is used of these links.
  [[nodiscard]] std::span<const FlowSlot> changed() const { return changed_; }
  [[nodiscard]] std::span<const LinkId> touched() const { return touched_.all(); }

 private:
  // A step of the filling. Steps are compared as one number.
  class Step {
   public:
    Step() = default;
    Step(std::uint64_t units, LinkId link) : units_(units), link_(link) {}

    [[nodiscard]] std::uint64_t units() const { return units_; }
    [[nodiscard]] LinkId link() const { return link_; }

    bool operator==(const Step&) const = default;
    friend bool operator<(const Step& a, const Step& b) { return a.key() < b.key(); }

   private:
    [[nodiscard]] Wide key() const { return Wide{units_} << 32 | link_; }

    std::uint64_t units_ = 0;
    LinkId link_ = 0;
  };
  struct LinkState {
    std::uint64_t room = 0;
    std::uint64_t used = 0;
    // In refill(), of a touched link: what the steps so far left of the room, for how many hops of
    // flows that wait, and the level at which an event is planned.
    std::uint64_t left = 0;
    std::uint64_t planned = 0;
    std::uint32_t waiting = 0;
    bool has_old_step = false;  // an event is planned at it
  };
  enum class State : std::uint8_t {
    settled,    // nothing is known to have changed
    scheduled,  // settled, and an event is planned at its old step
    waiting,    // new, or held back no more at its old step
    frozen,     // its step is known
  };
  struct FlowState {
    Step step;
    State state = State::settled;
  };

  void grow();
  [[nodiscard]] bool is_in_use(LinkId link) const;
  template <typename Action>
  void for_each_user(LinkId link, const Action& action) const;
  void plan(Step step);
  void plan_level(LinkId link);
  void touch(LinkId link);
  void touch_route(FlowSlot flow);
  void schedule(FlowSlot flow);
  void look_at_level(LinkId link);
  void look_at_old_step(LinkId link);
  void freeze_waiting(Step step);
  void freeze(FlowSlot flow, Step step);

  const FlowTable& table_;
  std::span<const TrafficClass> classes_;
  std::vector<LinkState> links_;
  std::vector<FlowState> flows_;
  LinkSet changed_links_;  // since the last refill()
  // Memory of refill().
  LinkSet touched_;
  std::vector<FlowSlot> frozen_;
  std::vector<FlowSlot> changed_;
  std::vector<Step> events_;  // a heap: when to look at a link
  std::vector<LinkId> old_steps_;
  std::size_t pending_ = 0;  // flows that are scheduled or wait
  Step now_;
};

}  // namespace vpfs::sim
