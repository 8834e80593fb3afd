#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/sim/cluster/network/routes.h"

namespace vpfs::sim {
namespace {

const std::vector<DragonflySize> kSizes = {{2, 4, 2}, {4, 6, 4}, {1, 1, 1}, {3, 2, 1}, {1, 1, 5}};

VertexId group_of(const Topology& topology, const DragonflySize& size, VertexId vertex) {
  const auto router = static_cast<VertexId>(vertex < topology.nodes() ? vertex / size.nodes
                                                                      : vertex - topology.nodes());
  return router / static_cast<VertexId>(size.routers);
}

std::string to_string(const DragonflySize& size) {
  return std::to_string(size.nodes) + "," + std::to_string(size.routers) + "," +
         std::to_string(size.globals);
}

TEST(Dragonfly, HasTheNodesThatItsNotationSays) {
  EXPECT_EQ(made(make_dragonfly({2, 4, 2}, kRates))->nodes(), 72U);
  EXPECT_EQ(made(make_dragonfly({4, 6, 4}, kRates))->nodes(), 600U);
}

TEST(Dragonfly, OneCableJoinsEachTwoGroupsAndEachTwoRoutersOfAGroup) {
  for (const DragonflySize& size : kSizes) {
    SCOPED_TRACE(to_string(size));
    const auto topology = made(make_dragonfly(size, kRates));
    const std::uint64_t groups = size.routers * size.globals + 1;
    std::map<std::pair<VertexId, VertexId>, int> between_groups;
    std::map<std::pair<VertexId, VertexId>, int> within;
    std::map<VertexId, std::uint64_t> globals_of_router;
    for (const NetworkLink& link : topology->links()) {
      const VertexId from = group_of(*topology, size, link.from);
      const VertexId to = group_of(*topology, size, link.to);
      if (link.from < topology->nodes() || link.to < topology->nodes()) {
        EXPECT_EQ(from, to);
        EXPECT_EQ(link.capacity, kNodeRate);
      } else if (from == to) {
        ++within[{link.from, link.to}];
        EXPECT_EQ(link.capacity, kLocalRate);
      } else {
        ++between_groups[{from, to}];
        ++globals_of_router[link.from];
        EXPECT_EQ(link.capacity, kGlobalRate);
      }
    }
    EXPECT_EQ(between_groups.size(), groups * (groups - 1));
    EXPECT_EQ(within.size(), groups * size.routers * (size.routers - 1));
    for (const auto& [pair, count] : between_groups) EXPECT_EQ(count, 1);
    for (const auto& [pair, count] : within) EXPECT_EQ(count, 1);
    for (const auto& [router, count] : globals_of_router) EXPECT_EQ(count, size.globals);
    EXPECT_EQ(globals_of_router.size(), groups * size.routers);
  }
}

TEST(Dragonfly, RoutesAreSound) {
  for (const DragonflySize& size : kSizes) {
    SCOPED_TRACE(to_string(size));
    expect_sound_routes(*made(make_dragonfly(size, kRates)));
  }
}

TEST(Dragonfly, RoutesBetweenGroupsPassOneOther) {
  for (const DragonflySize& size : kSizes) {
    SCOPED_TRACE(to_string(size));
    const auto topology = made(make_dragonfly(size, kRates));
    Random random(3);
    for (NodeId from = 0; from < topology->nodes(); from += 5) {
      for (NodeId to = 0; to < topology->nodes(); to += 3) {
        std::vector<LinkId> route;
        topology->route(from, to, random, route);
        std::vector<VertexId> groups = {group_of(*topology, size, from)};
        for (const LinkId link : route) {
          const VertexId group = group_of(*topology, size, topology->links()[link].to);
          if (group != groups.back()) groups.push_back(group);
        }
        const bool is_within = groups.front() == group_of(*topology, size, to);
        const bool has_others = size.routers * size.globals > 1;
        ASSERT_EQ(groups.size(), is_within ? 1U : has_others ? 3U : 2U);
        ASSERT_EQ(std::set(groups.begin(), groups.end()).size(), groups.size());
        ASSERT_LE(route.size(), is_within ? 3U : 7U);
      }
    }
  }
}

TEST(Dragonfly, EachOtherGroupIsPassedEquallyOften) {
  const DragonflySize size{2, 4, 2};
  const auto topology = made(make_dragonfly(size, kRates));
  Random random(11);
  std::map<VertexId, int> passed;
  constexpr int kRoutes = 7'000;
  for (int i = 0; i < kRoutes; ++i) {
    std::vector<LinkId> route;
    topology->route(20, 50, random, route);
    VertexId before = 0;
    for (const LinkId link : route) {
      const VertexId group = group_of(*topology, size, topology->links()[link].to);
      if (group != before && group != 2 && group != 6) ++passed[group];
      before = group;
    }
  }
  ASSERT_EQ(passed.size(), 7U);
  for (const auto& [group, count] : passed) {
    EXPECT_NEAR(count, kRoutes / 7, 5 * 30) << "5 standard deviations, group " << group;
  }
}

TEST(Dragonfly, ImpossibleOnesAreRefused) {
  EXPECT_EQ(make_dragonfly({0, 4, 2}, kRates).error().message,
            "p, the nodes of a dragonfly's router, must be 1 ... 4096, not 0");
  EXPECT_EQ(make_dragonfly({2, 0, 2}, kRates).error().message,
            "a, the routers of a dragonfly's group, must be 1 ... 4096, not 0");
  EXPECT_EQ(make_dragonfly({2, 4, 4097}, kRates).error().message,
            "h, the global links of a dragonfly's router, must be 1 ... 4096, not 4097");
  EXPECT_EQ(make_dragonfly({64, 256, 64}, kRates).error().message,
            "a dragonfly (64, 256, 64) has 1874968320 links, more than 4194304");
  EXPECT_FALSE(make_dragonfly({4096, 4096, 4096}, kRates));
  EXPECT_EQ(make_dragonfly({2, 4, 2}, {.node = kNodeRate, .local = kLocalRate}).error().message,
            "the rate of links between groups must be 1 ... 1125899906842624, not 0");
}

}  // namespace
}  // namespace vpfs::sim
