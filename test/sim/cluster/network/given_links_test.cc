#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/sim/cluster/network/routes.h"

namespace vpfs::sim {
namespace {

using ::testing::ElementsAre;

GivenLinks both_ways(std::uint64_t nodes, std::uint64_t switches,
                     const std::vector<std::pair<VertexId, VertexId>>& cables) {
  GivenLinks given{.nodes = nodes, .switches = switches, .links = {}};
  for (const auto& [one, other] : cables) {
    given.links.push_back({.from = one, .to = other, .capacity = kNodeRate});
    given.links.push_back({.from = other, .to = one, .capacity = kNodeRate});
  }
  return given;
}

TEST(GivenLinks, AreKeptAsTheyAre) {
  const GivenLinks given = both_ways(2, 1, {{0, 2}, {2, 1}});
  const auto topology = made(make_given_links(given));
  EXPECT_EQ(topology->nodes(), 2U);
  EXPECT_EQ(topology->vertices(), 3U);
  EXPECT_EQ(topology->links(), given.links);
}

TEST(GivenLinks, RoutesAreTheShortest) {
  // A ring of six switches with a node each, and a chord.
  const auto topology = made(make_given_links(both_ways(6, 6,
                                                        {{0, 6},
                                                         {1, 7},
                                                         {2, 8},
                                                         {3, 9},
                                                         {4, 10},
                                                         {5, 11},
                                                         {6, 7},
                                                         {7, 8},
                                                         {8, 9},
                                                         {9, 10},
                                                         {10, 11},
                                                         {11, 6},
                                                         {6, 9}})));
  expect_sound_routes(*topology);
  EXPECT_THAT(vertices_of(*topology, 0, 3), ElementsAre(0, 6, 9, 3));
  EXPECT_THAT(vertices_of(*topology, 0, 2), ElementsAre(0, 6, 7, 8, 2)) << "the first link first";
  EXPECT_THAT(vertices_of(*topology, 5, 3), ElementsAre(5, 11, 10, 9, 3));
}

TEST(GivenLinks, AmongEqualWaysTheOneByTheFirstLinkIsTaken) {
  const std::vector<std::pair<VertexId, VertexId>> ways = {{0, 2}, {0, 3}, {2, 1}, {3, 1}};
  EXPECT_THAT(vertices_of(*made(make_given_links(both_ways(2, 2, ways))), 0, 1),
              ElementsAre(0, 2, 1));
  EXPECT_THAT(
      vertices_of(*made(make_given_links(both_ways(2, 2, {ways[1], ways[0], ways[2], ways[3]}))), 0,
                  1),
      ElementsAre(0, 3, 1));
  EXPECT_THAT(route_of(*made(make_given_links(both_ways(2, 0, {{0, 1}, {0, 1}}))), 0, 1),
              ElementsAre(0))
      << "of two equal links";
}

TEST(GivenLinks, MayPassNodesAndGoOneWay) {
  const auto ring =
      made(make_given_links({.nodes = 3,
                             .switches = 0,
                             .links = {{0, 1, kNodeRate}, {1, 2, kNodeRate}, {2, 0, kNodeRate}}}));
  expect_sound_routes(*ring);
  EXPECT_THAT(vertices_of(*ring, 1, 0), ElementsAre(1, 2, 0));
}

TEST(GivenLinks, ImpossibleOnesAreRefused) {
  const auto error = [](const GivenLinks& given) {
    return make_given_links(given).error().message;
  };
  EXPECT_EQ(error({.nodes = 0, .switches = 1, .links = {}}), "nodes must be 1 ... 4194304, not 0");
  EXPECT_EQ(error({.nodes = 2, .switches = 1, .links = {{0, 3, kNodeRate}}}),
            "link 0 ends at 3, but nodes and switches are 0 ... 2");
  EXPECT_EQ(error({.nodes = 2, .switches = 0, .links = {{0, 1, kNodeRate}, {1, 1, kNodeRate}}}),
            "link 1 leads from 1 to itself");
  EXPECT_EQ(error({.nodes = 2, .switches = 0, .links = {{0, 1, {0}}}}),
            "the rate of link 0 must be 1 ... 1125899906842624, not 0");
  EXPECT_EQ(error({.nodes = 2, .switches = 0, .links = {{0, 1, kNodeRate}}}),
            "no way leads from node 1 to node 0");
  EXPECT_EQ(error({.nodes = 100'000, .switches = 0, .links = {}}),
            "100000 nodes times 100000 nodes and switches are more than 67108864 routes");
  EXPECT_TRUE(make_given_links({.nodes = 1, .switches = 0, .links = {}}));
}

}  // namespace
}  // namespace vpfs::sim
