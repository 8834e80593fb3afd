#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "base/wide.h"
#include "sim/cluster/network/allocation.h"
#include "sim/cluster/network/class_policy.h"
#include "sim/cluster/network/end_queue.h"
#include "sim/cluster/network/flow_table.h"
#include "sim/cluster/network/rate.h"
#include "sim/cluster/network/topology.h"
#include "sim/engine/engine.h"

namespace vpfs::sim {

// Moves bytes over links in virtual time, at flow level: a flow uses all links of its route at
// once, at a rate that class_policy.h defines. Rates change only when a flow starts or ends.
// Changes of one instant take effect together, after its other events.
//
// Links are numbers. A Topology has routes over its own; what else has a bandwidth that many flows
// share, such as a device or the uplink of a storage system, is a further link of their routes.
//
// Exact: a flow ends at the first nanosecond at which its rates, over time, add up to its size.
class Network {
 public:
  // Runs once, from an event of its own, when the last byte has passed. It may start flows.
  using Done = std::move_only_function<void()>;
  enum class FlowId : std::uint64_t {};

  struct Flow {
    // Links in any order; only used during start(). Without any, and without a cap, the flow ends
    // in the instant in which it starts.
    std::span<const LinkId> route;
    Bytes size;
    TrafficClass traffic_class = TrafficClass::communication;
    std::optional<BytesPerSecond> cap = std::nullopt;  // 1 ... LinkRates::kMost
    bool may_rise = true;  // its rate; only Sharing::equal and Sharing::study look at it
  };

  // The engine outlives it. REQUIRES: capacities are 1 ... LinkRates::kMost.
  Network(Engine& engine, std::span<const BytesPerSecond> capacities, ClassPolicy policy);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  FlowId start(const Flow& flow, Done done);

  // Whether it has started and not ended.
  [[nodiscard]] bool is_running(FlowId flow) const;
  // 0 until the instant of its start is over, and while others have priority. REQUIRES: it runs.
  [[nodiscard]] Rate rate(FlowId flow) const;
  // Bytes that have not passed, rounded up. REQUIRES: it runs.
  [[nodiscard]] Bytes remaining(FlowId flow) const;

  [[nodiscard]] std::size_t running() const { return running_; }
  // Bytes of ended flows that have passed the link.
  [[nodiscard]] Bytes carried(LinkId link) const { return carried_[link]; }
  // With BA: how often classes may have missed their shares (apportioned_filling.h).
  [[nodiscard]] std::uint64_t unsettled() const { return allocation_.unsettled(); }

 private:
  struct Transfer {
    Wide remaining = 0;  // at `since`; in 2^-12 bytes * 1 ns / 1 s, so that rate * time has no rest
    TimePoint since;
    Rate rate;
    std::uint64_t order = 0;  // of starts
    Bytes size;
    std::uint32_t generation = 0;  // of the slot
    bool is_running = false;
  };

  [[nodiscard]] const Transfer& transfer(FlowId flow) const;
  [[nodiscard]] Wide remaining_now(const Transfer& transfer) const;
  void plan_settle();
  void settle();
  void set_rate(FlowSlot slot, Rate rate);
  void plan_end();
  void end_due_flows();
  void end(FlowSlot slot);

  Engine& engine_;
  FlowTable table_;
  Allocation allocation_;
  std::vector<Transfer> transfers_;
  std::vector<Done> done_;
  EndQueue ends_;
  std::vector<Bytes> carried_;
  std::size_t running_ = 0;
  std::uint64_t started_ = 0;
  std::optional<Engine::EventId> settle_event_;
  std::optional<Engine::EventId> end_event_;
  TimePoint end_time_;  // of end_event_
};

}  // namespace vpfs::sim
