#include "sim/cluster/network/network.h"

#include <limits>
#include <utility>

#include "base/check.h"
#include "base/wide.h"

namespace vpfs::sim {
namespace {

// After whatever else happens in an instant.
constexpr Engine::Rank kLast = std::numeric_limits<Engine::Rank>::max();
constexpr std::uint64_t kUnitsOfAByte = Rate::kUnitsOfAByte * 1'000'000'000;

// Rounded up. A time that cannot be reached is kNever.
TimePoint time_of_end(TimePoint since, Wide remaining, Rate rate) {
  if (rate.units == 0) return kNever;
  const Wide most = static_cast<Wide>((kNever - since).count());
  const Wide needed = remaining <= std::numeric_limits<std::uint64_t>::max() - rate.units
                          ? (static_cast<std::uint64_t>(remaining) + rate.units - 1) / rate.units
                          : (remaining + rate.units - 1) / rate.units;
  return needed < most ? since + Duration(static_cast<std::int64_t>(needed)) : kNever;
}

}  // namespace

Network::Network(Engine& engine, std::span<const BytesPerSecond> capacities, ClassPolicy policy)
    : engine_(engine),
      table_(capacities),
      allocation_(table_, policy),
      carried_(capacities.size()) {}

Network::~Network() {
  if (settle_event_) engine_.cancel(*settle_event_);
  if (end_event_) engine_.cancel(*end_event_);
}

Network::FlowId Network::start(const Flow& flow, Done done) {
  const bool is_at_once = flow.size.count == 0 || (flow.route.empty() && !flow.cap);
  const FlowSlot slot = is_at_once
                            ? table_.add({}, flow.traffic_class, std::nullopt)
                            : table_.add(flow.route, flow.traffic_class, flow.cap, flow.may_rise);
  if (slot >= transfers_.size()) {
    transfers_.resize(slot + std::size_t{1});
    done_.resize(slot + std::size_t{1});
  }
  Transfer& transfer = transfers_[slot];
  transfer = {.remaining = is_at_once ? 0 : Wide{flow.size.count} * kUnitsOfAByte,
              .since = engine_.now(),
              .rate = {},
              .order = started_++,
              .size = flow.size,
              .generation = transfer.generation,
              .is_running = true};
  done_[slot] = std::move(done);
  ++running_;
  if (is_at_once) {
    ends_.set({.time = engine_.now(), .order = transfer.order, .flow = slot});
    plan_end();
  } else {
    allocation_.started(slot);
    plan_settle();
  }
  return FlowId{std::uint64_t{transfer.generation} << 32 | slot};
}

bool Network::is_running(FlowId flow) const {
  const auto slot = static_cast<FlowSlot>(std::to_underlying(flow));
  return slot < transfers_.size() && transfers_[slot].is_running &&
         transfers_[slot].generation == std::to_underlying(flow) >> 32;
}

const Network::Transfer& Network::transfer(FlowId flow) const {
  VPFS_ASSERT(is_running(flow));
  return transfers_[static_cast<FlowSlot>(std::to_underlying(flow))];
}

Rate Network::rate(FlowId flow) const {
  return transfer(flow).rate;
}

Bytes Network::remaining(FlowId flow) const {
  const Wide left = remaining_now(transfer(flow));
  return {static_cast<std::uint64_t>((left + kUnitsOfAByte - 1) / kUnitsOfAByte)};
}

Wide Network::remaining_now(const Transfer& transfer) const {
  const Duration elapsed = engine_.now() - transfer.since;
  const Wide passed = Wide{transfer.rate.units} * static_cast<std::uint64_t>(elapsed.count());
  return transfer.remaining > passed ? transfer.remaining - passed : 0;
}

void Network::plan_settle() {
  if (settle_event_) return;
  settle_event_ = engine_.at(
      engine_.now(), [this] { settle(); }, kLast);
}

void Network::settle() {
  settle_event_.reset();
  for (const FlowSlot slot : allocation_.settle()) {
    if (const Rate rate = allocation_.rate(slot); rate != transfers_[slot].rate) {
      set_rate(slot, rate);
    }
  }
  plan_end();
}

void Network::set_rate(FlowSlot slot, Rate rate) {
  Transfer& transfer = transfers_[slot];
  transfer.remaining = remaining_now(transfer);
  transfer.since = engine_.now();
  transfer.rate = rate;
  const TimePoint time = time_of_end(transfer.since, transfer.remaining, rate);
  if (time == kNever) {
    ends_.remove(slot);
  } else {
    ends_.set({.time = time, .order = transfer.order, .flow = slot});
  }
}

void Network::plan_end() {
  const TimePoint time = ends_.empty() ? kNever : ends_.next().time;
  if (end_event_) {
    if (time == end_time_) return;
    engine_.cancel(*end_event_);
    end_event_.reset();
  }
  if (ends_.empty()) return;
  end_time_ = time;
  end_event_ = engine_.at(time, [this] { end_due_flows(); });
}

void Network::end_due_flows() {
  end_event_.reset();
  while (!ends_.empty() && ends_.next().time <= engine_.now()) end(ends_.next().flow);
  plan_end();
}

void Network::end(FlowSlot slot) {
  Transfer& transfer = transfers_[slot];
  VPFS_DEBUG_ASSERT(remaining_now(transfer) == 0);
  ends_.remove(slot);
  const std::span<const LinkId> route = table_.route(slot);
  for (const LinkId link : route) {
    if (link < table_.links()) carried_[link] += transfer.size;
  }
  if (!route.empty()) {
    allocation_.ended(slot);
    plan_settle();
  }
  table_.remove(slot);
  transfer.is_running = false;
  ++transfer.generation;
  --running_;
  Done done = std::exchange(done_[slot], nullptr);
  if (done) done();
}

}  // namespace vpfs::sim
