#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "sim/cluster/network/topology.h"

namespace vpfs::sim {

// An error says what makes the topology impossible.
using MadeTopology = Result<std::unique_ptr<const Topology>>;

// All nodes at one switch, which is never a bottleneck.
[[nodiscard]] MadeTopology make_single_switch(std::uint64_t nodes, BytesPerSecond rate);

// A torus with a node at each of x * y * z switches. Node and switch (i, j, k) have the number i +
// x * (j + y * k). A switch is linked with the next and the previous one in each dimension, the
// last with the first. Two switches of a dimension have one cable, one switch has none.
//
// Routing goes through the dimensions in their order, in each the shorter way round; up if both
// ways are equal.
struct TorusSize {
  std::uint64_t x = 1;
  std::uint64_t y = 1;
  std::uint64_t z = 1;
};
[[nodiscard]] MadeTopology make_torus(TorusSize size, LinkRates rates);

// The k-ary n-tree of Petrini and Vanneschi (1997), written k:n. It has k^n nodes, and k^(n-1)
// switches in each of n levels, with k ports down and, but in the highest level, k up.
//
// Routing goes up to the lowest level that has common switches, by the port that the destination's
// digit of the level says (D-mod-k; Zahavi, 2012), and down. So all routes to a node end in the
// same way, and a shift of all nodes' numbers meets no contention.
struct FatTreeSize {
  std::uint64_t ports = 1;   // k
  std::uint64_t levels = 1;  // n
};
[[nodiscard]] MadeTopology make_fat_tree(FatTreeSize size, LinkRates rates);

// The dragonfly of Kim et al. (2008), written (p, a, h), of the largest size: a * h + 1 groups. All
// routers of a group are linked with each other, and each two groups by one cable. The global port
// j of group g, at its router j / h, leads to group g + j + 1, modulo the groups.
//
// Routing between groups is Valiant's: by a random third group, the shortest way to it and from it.
// Within a group it is direct.
struct DragonflySize {
  std::uint64_t nodes = 1;    // p, at each router
  std::uint64_t routers = 1;  // a, of each group
  std::uint64_t globals = 1;  // h, global links of each router
};
[[nodiscard]] MadeTopology make_dragonfly(DragonflySize size, LinkRates rates);

// Any links, numbered in their order, between nodes and switches. Routes have as few links as
// possible. Where several links lead on, the first one of the list is taken. Routes may pass nodes.
// Every node must reach every other.
struct GivenLinks {
  std::uint64_t nodes = 0;
  std::uint64_t switches = 0;
  std::vector<NetworkLink> links;
};
[[nodiscard]] MadeTopology make_given_links(const GivenLinks& given);

}  // namespace vpfs::sim
