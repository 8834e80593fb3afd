#include "test/sim/cluster/network/routes.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "base/check.h"

namespace vpfs::sim {

std::unique_ptr<const Topology> made(MadeTopology topology) {
  EXPECT_TRUE(topology.has_value()) << topology.error().message;
  VPFS_ASSERT(topology.has_value());
  return std::move(*topology);
}

std::vector<LinkId> route_of(const Topology& topology, NodeId from, NodeId to, std::uint64_t seed) {
  Random random(seed);
  std::vector<LinkId> links;
  topology.route(from, to, random, links);
  return links;
}

std::vector<VertexId> vertices_of(const Topology& topology, NodeId from, NodeId to,
                                  std::uint64_t seed) {
  std::vector<VertexId> vertices = {from};
  for (const LinkId link : route_of(topology, from, to, seed)) {
    vertices.push_back(topology.links()[link].to);
  }
  return vertices;
}

void expect_sound_routes(const Topology& topology) {
  Random random(7);
  std::vector<LinkId> route;
  const NodeId step = topology.nodes() > 100 ? 11 : 1;
  for (NodeId from = 0; from < topology.nodes(); from += step) {
    for (NodeId to = 0; to < topology.nodes(); ++to) {
      route.assign({LinkId{0}});
      topology.route(from, to, random, route);
      ASSERT_EQ(route.front(), 0U) << "a route is appended";
      route.erase(route.begin());
      VertexId at = from;
      for (const LinkId link : route) {
        ASSERT_LT(link, topology.links().size());
        ASSERT_EQ(topology.links()[link].from, at) << from << " to " << to;
        at = topology.links()[link].to;
        ASSERT_LT(at, topology.vertices());
      }
      ASSERT_EQ(at, to) << "from " << from;
      std::ranges::sort(route);
      ASSERT_EQ(std::ranges::adjacent_find(route), route.end()) << from << " to " << to;
    }
  }
}

std::uint32_t most_on_a_link(const Topology& topology, const std::vector<NodeId>& destinations) {
  std::vector<std::uint32_t> routes(topology.links().size());
  for (NodeId from = 0; from < destinations.size(); ++from) {
    for (const LinkId link : route_of(topology, from, destinations[from])) ++routes[link];
  }
  return *std::ranges::max_element(routes);
}

}  // namespace vpfs::sim
