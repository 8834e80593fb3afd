#include "sim/cluster/network/equal_shares.h"

#include <algorithm>
#include <limits>

#include "base/wide.h"

namespace vpfs::sim {

EqualShares::EqualShares(const FlowTable& table, ClassPolicy policy)
    : table_(table), policy_(policy) {
  changed_links_.grow(table.links());
}

void EqualShares::started(FlowSlot flow) {
  if (rates_.size() < table_.slots()) {
    rates_.resize(table_.slots());
    updated_.resize(table_.slots());
  }
  rates_[flow] = {};
  started_.push_back(flow);
  for (const LinkId link : table_.route(flow)) {
    if (link < table_.links()) changed_links_.add(link);
  }
}

void EqualShares::ended(FlowSlot flow) {
  std::erase(started_, flow);
  for (const LinkId link : table_.route(flow)) {
    if (link < table_.links()) changed_links_.add(link);
  }
}

void EqualShares::refill() {
  changed_.clear();
  ++refills_;
  // One whose only link is its cap is found on no link.
  for (const FlowSlot flow : started_) update(flow);
  started_.clear();
  for (const LinkId link : changed_links_.all()) {
    for (const TrafficClass traffic_class : kAllClasses) {
      for (const FlowTable::Use& use : table_.users(link, traffic_class)) update(use.flow);
    }
  }
  changed_links_.clear();
}

void EqualShares::update(FlowSlot flow) {
  if (updated_[flow] == refills_) return;
  updated_[flow] = refills_;
  Rate lowest = {std::numeric_limits<std::uint64_t>::max()};
  for (const LinkId link : table_.route(flow)) {
    lowest = std::min(lowest, part_of(link, table_.traffic_class(flow)));
  }
  if (rates_[flow] == lowest) return;
  if (!table_.may_rise(flow) && rates_[flow].units > 0 && rates_[flow] < lowest) return;
  rates_[flow] = lowest;
  changed_.push_back(flow);
}

bool EqualShares::is_unbounded(std::uint64_t communication, bool is_storage) const {
  return policy_.sharing == Sharing::study && policy_.kind == ClassPolicy::Kind::priority &&
         is_storage && communication > 0;
}

Rate EqualShares::part_of(LinkId link, TrafficClass traffic_class) const {
  const Rate capacity = table_.capacity(link);
  if (link >= table_.links()) return capacity;
  const std::uint64_t communication = table_.users(link, TrafficClass::communication).size();
  const std::uint64_t storage = table_.users(link, TrafficClass::storage).size();
  const bool is_storage = traffic_class == TrafficClass::storage;
  const std::uint64_t own = is_storage ? storage : communication;
  if (is_unbounded(communication, is_storage)) {
    return {std::numeric_limits<std::uint64_t>::max()};
  }
  switch (policy_.kind) {
    case ClassPolicy::Kind::none:
      break;
    case ClassPolicy::Kind::priority:
      if (!is_storage) return {std::max<std::uint64_t>(capacity.units / own, 1)};
      break;
    case ClassPolicy::Kind::apportioned:
      if (communication > 0 && storage > 0) {
        const std::uint64_t parts = std::uint64_t{policy_.communication} + policy_.storage;
        const std::uint64_t part = is_storage ? policy_.storage : policy_.communication;
        const Wide units = Wide{capacity.units} * part / parts / own;
        return {std::max(static_cast<std::uint64_t>(units), std::uint64_t{1})};
      }
      break;
  }
  return {std::max<std::uint64_t>(capacity.units / (communication + storage), 1)};
}

}  // namespace vpfs::sim
