#include "sim/cluster/placement/distances.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "sim/engine/random.h"

namespace vpfs::sim {

Distances::Distances(const Topology& topology) : nodes_(topology.nodes()), hops_(nodes_ * nodes_) {
  Random random(1);
  std::vector<LinkId> route;
  for (NodeId from = 0; from < nodes_; ++from) {
    for (NodeId to = 0; to < nodes_; ++to) {
      route.clear();
      topology.route(from, to, random, route);
      hops_[from * nodes_ + to] =
          static_cast<std::uint8_t>(std::min<std::size_t>(route.size(), 255));
    }
  }
}

void Distances::order_from(std::span<const NodeId> places, std::vector<NodeId>& nodes) const {
  VPFS_ASSERT(!places.empty());
  std::vector<std::pair<std::uint32_t, std::uint64_t>> ways(nodes_);
  for (const NodeId node : nodes) {
    std::uint32_t nearest = std::numeric_limits<std::uint32_t>::max();
    std::uint64_t all = 0;
    for (const NodeId place : places) {
      nearest = std::min(nearest, between(node, place));
      all += between(node, place);
    }
    ways[node] = {nearest, all};
  }
  std::ranges::sort(nodes, {}, [&](NodeId node) { return std::pair(ways[node], node); });
}

void Distances::order_around_best(std::vector<NodeId>& nodes, std::uint32_t count) const {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  NodeId best = nodes.front();
  for (const NodeId middle : nodes) {
    std::vector<std::uint32_t> ways;
    for (const NodeId node : nodes) ways.push_back(between(middle, node));
    std::ranges::nth_element(ways, ways.begin() + (count - 1));
    std::uint64_t all = 0;
    for (std::uint32_t i = 0; i < count; ++i) all += ways[i];
    if (all < least) {
      least = all;
      best = middle;
    }
  }
  std::ranges::sort(nodes, {}, [&](NodeId node) { return std::pair(between(best, node), node); });
}

}  // namespace vpfs::sim
