#include "sim/network/water_filling.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::sim {

void WaterFilling::grow() {
  if (links_.size() < table_.all_links()) links_.resize(table_.all_links());
  if (flows_.size() < table_.slots()) flows_.resize(table_.slots());
}

void WaterFilling::fill(std::span<const FlowSlot> flows, std::span<const LinkId> links) {
  for (const LinkId link : links) links_[link].hops = 0;
  for (const FlowSlot flow : flows) {
    flows_[flow].is_waiting = true;
    for (const LinkId link : table_.route(flow)) ++links_[link].hops;
  }
  waiting_ = flows.size();
  heap_.clear();
  for (const LinkId link : links) {
    LinkState& state = links_[link];
    state.waiting = state.hops;
    if (state.hops > 0) heap_.push_back({.units = state.room / state.hops, .link = link});
  }
  build_heap();
  while (waiting_ > 0) {
    VPFS_DEBUG_ASSERT(!heap_.empty());
    const Level lowest = heap_.front();
    const LinkState& state = links_[lowest.link];
    if (state.waiting == 0) {
      drop_lowest();
      continue;
    }
    const Level now = {.units = state.room / state.waiting, .link = lowest.link};
    if (now == lowest) {
      drop_lowest();
      freeze_flows(now);
    } else {
      heap_.front() = now;
      sift_down(0);
    }
  }
}

void WaterFilling::freeze_flows(Level level) {
  if (level.link >= table_.links()) return freeze(table_.owner(level.link), level.units);
  for (const auto traffic_class : {TrafficClass::communication, TrafficClass::storage}) {
    for (const FlowTable::Use& use : table_.users(level.link, traffic_class)) {
      if (flows_[use.flow].is_waiting) freeze(use.flow, level.units);
    }
  }
}

void WaterFilling::freeze(FlowSlot flow, std::uint64_t level) {
  flows_[flow] = {.rate = {level}, .is_waiting = false};
  --waiting_;
  for (const LinkId link : table_.route(flow)) {
    links_[link].room -= level;
    --links_[link].waiting;
  }
}

void WaterFilling::build_heap() {
  for (std::size_t place = heap_.size() / 2; place-- > 0;) sift_down(place);
}

void WaterFilling::drop_lowest() {
  heap_.front() = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sift_down(0);
}

void WaterFilling::sift_down(std::size_t place) {
  const Level moved = heap_[place];
  for (std::size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
    if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
    if (!(heap_[child] < moved)) break;
    heap_[place] = heap_[child];
    place = child;
  }
  heap_[place] = moved;
}

}  // namespace vpfs::sim
