#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/network/topology.h"

namespace vpfs::sim {

// How many links are between nodes. Where routes are drawn, it is the length of one of them.
class Distances {
 public:
  explicit Distances(const Topology& topology);

  [[nodiscard]] std::uint32_t between(NodeId one, NodeId other) const {
    return hops_[std::size_t{one} * nodes_ + other];
  }
  // Puts those first from which the way to the nearest of `places` is shortest, then the way to all
  // of them. REQUIRES: there are places.
  void order_from(std::span<const NodeId> places, std::vector<NodeId>& nodes) const;
  // Puts a node and its `count` - 1 nearest ones first, so that the ways from it are as short as
  // possible. REQUIRES: 1 <= count <= nodes.size().
  void order_around_best(std::vector<NodeId>& nodes, std::uint32_t count) const;

 private:
  std::size_t nodes_;
  std::vector<std::uint8_t> hops_;
};

}  // namespace vpfs::sim
