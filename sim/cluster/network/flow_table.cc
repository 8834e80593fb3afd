#include "sim/cluster/network/flow_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace vpfs::sim {

FlowTable::FlowTable(std::span<const BytesPerSecond> capacities)
    : links_(capacities.size()), users_(capacities.size()) {
  capacities_.reserve(capacities.size());
  for (const BytesPerSecond capacity : capacities) {
    VPFS_ASSERT(capacity.count >= 1 && capacity.count <= LinkRates::kMost);
    capacities_.push_back(Rate::of(capacity));
  }
}

FlowSlot FlowTable::add(std::span<const LinkId> route, TrafficClass traffic_class,
                        std::optional<BytesPerSecond> cap, bool may_rise) {
  widen(route.size() + 1);
  const FlowSlot slot = take_slot();
  flows_[slot] = {.hops = static_cast<std::uint32_t>(route.size()),
                  .traffic_class = traffic_class,
                  .may_rise = may_rise};
  for (std::uint32_t hop = 0; hop < route.size(); ++hop) {
    VPFS_ASSERT(route[hop] < links_);
    auto& users = users_[route[hop]][static_cast<std::size_t>(traffic_class)];
    routes_[slot * stride_ + hop] = route[hop];
    places_[slot * stride_ + hop] = static_cast<std::uint32_t>(users.size());
    users.push_back({.flow = slot, .hop = hop});
  }
  if (cap) {
    VPFS_ASSERT(cap->count >= 1 && cap->count <= LinkRates::kMost);
    const auto own = static_cast<LinkId>(links_ + slot);
    capacities_[own] = Rate::of(*cap);
    routes_[slot * stride_ + flows_[slot].hops++] = own;
  }
  return slot;
}

void FlowTable::remove(FlowSlot flow) {
  const std::span<const LinkId> hops = route(flow);
  for (std::size_t hop = 0; hop < hops.size() && hops[hop] < links_; ++hop) {
    auto& users = users_[hops[hop]][static_cast<std::size_t>(flows_[flow].traffic_class)];
    const std::uint32_t place = places_[flow * stride_ + hop];
    const Use last = users.back();
    users[place] = last;
    places_[last.flow * stride_ + last.hop] = place;
    users.pop_back();
  }
  flows_[flow].hops = 0;
  free_.push_back(flow);
}

FlowSlot FlowTable::take_slot() {
  if (free_.empty()) {
    free_.push_back(static_cast<FlowSlot>(flows_.size()));
    flows_.emplace_back();
    capacities_.emplace_back();
    routes_.resize(flows_.size() * stride_);
    places_.resize(flows_.size() * stride_);
  }
  const FlowSlot slot = free_.back();
  free_.pop_back();
  return slot;
}

void FlowTable::widen(std::size_t hops) {
  if (hops <= stride_) return;
  const std::size_t wider = std::bit_ceil(hops);
  std::vector<LinkId> routes(flows_.size() * wider);
  std::vector<std::uint32_t> places(flows_.size() * wider);
  for (std::size_t flow = 0; flow < flows_.size(); ++flow) {
    std::copy_n(routes_.data() + flow * stride_, flows_[flow].hops, routes.data() + flow * wider);
    std::copy_n(places_.data() + flow * stride_, flows_[flow].hops, places.data() + flow * wider);
  }
  routes_ = std::move(routes);
  places_ = std::move(places);
  stride_ = wider;
}

}  // namespace vpfs::sim
