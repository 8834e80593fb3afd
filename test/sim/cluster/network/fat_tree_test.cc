#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/sim/cluster/network/routes.h"

namespace vpfs::sim {
namespace {

using ::testing::ElementsAre;

std::uint64_t power(std::uint64_t base, std::uint64_t exponent) {
  return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

TEST(FatTree, HasAsManyNodesSwitchesAndLinksAsItsNotationSays) {
  for (const FatTreeSize size :
       {FatTreeSize{4, 3}, FatTreeSize{8, 3}, FatTreeSize{2, 5}, FatTreeSize{3, 1}}) {
    const auto tree = made(make_fat_tree(size, kRates));
    EXPECT_EQ(tree->nodes(), power(size.ports, size.levels));
    EXPECT_EQ(tree->vertices() - tree->nodes(), size.levels * power(size.ports, size.levels - 1));
    EXPECT_EQ(tree->links().size(), 2 * size.levels * tree->nodes());
    std::vector<std::uint64_t> ports(tree->vertices());
    for (const NetworkLink& link : tree->links()) ++ports[link.from];
    for (VertexId vertex = 0; vertex < tree->vertices(); ++vertex) {
      const bool is_highest = vertex >= tree->vertices() - power(size.ports, size.levels - 1);
      const std::uint64_t expected = vertex < tree->nodes() ? 1
                                     : is_highest           ? size.ports
                                                            : 2 * size.ports;
      ASSERT_EQ(ports[vertex], expected) << vertex;
    }
  }
  EXPECT_EQ(made(make_fat_tree({4, 3}, kRates))->nodes(), 64U);
  EXPECT_EQ(made(make_fat_tree({8, 3}, kRates))->nodes(), 512U);
}

TEST(FatTree, RoutesGoNoHigherThanTheLowestCommonSwitches) {
  for (const FatTreeSize size : {FatTreeSize{4, 3}, FatTreeSize{2, 4}, FatTreeSize{3, 1}}) {
    const auto tree = made(make_fat_tree(size, kRates));
    expect_sound_routes(*tree);
    for (NodeId from = 0; from < tree->nodes(); ++from) {
      for (NodeId to = 0; to < tree->nodes(); ++to) {
        std::uint64_t levels = 0;
        while (from / power(size.ports, levels) != to / power(size.ports, levels)) ++levels;
        ASSERT_EQ(route_of(*tree, from, to).size(), 2 * levels) << from << " to " << to;
      }
    }
  }
}

TEST(FatTree, AllRoutesToANodeComeDownTheSameWay) {
  const auto tree = made(make_fat_tree({4, 3}, kRates));
  for (NodeId to = 0; to < tree->nodes(); ++to) {
    std::vector<LinkId> last(tree->vertices(), ~LinkId{0});  // from each vertex, on the way down
    for (NodeId from = 0; from < tree->nodes(); ++from) {
      const std::vector<LinkId> route = route_of(*tree, from, to);
      for (std::size_t i = route.size() / 2; i < route.size(); ++i) {
        LinkId& known = last[tree->links()[route[i]].from];
        ASSERT_TRUE(known == ~LinkId{0} || known == route[i]) << from << " to " << to;
        known = route[i];
      }
    }
  }
}

TEST(FatTree, AShiftOfAllNodesMeetsNoContention) {
  for (const FatTreeSize size : {FatTreeSize{4, 3}, FatTreeSize{2, 5}}) {
    const auto tree = made(make_fat_tree(size, kRates));
    for (NodeId shift = 1; shift < tree->nodes(); ++shift) {
      std::vector<NodeId> to;
      for (NodeId node = 0; node < tree->nodes(); ++node) {
        to.push_back((node + shift) % tree->nodes());
      }
      ASSERT_EQ(most_on_a_link(*tree, to), 1U) << shift;
    }
  }
}

TEST(FatTree, TheFirstExample) {
  // In 2:2, switches 4 and 5 are below 6 and 7. Node 3 is reached through 7, since it is odd.
  const auto tree = made(make_fat_tree({2, 2}, kRates));
  EXPECT_THAT(vertices_of(*tree, 0, 3), ElementsAre(0, 4, 7, 5, 3));
  EXPECT_THAT(vertices_of(*tree, 1, 2), ElementsAre(1, 4, 6, 5, 2));
  EXPECT_THAT(vertices_of(*tree, 0, 1), ElementsAre(0, 4, 1));
}

TEST(FatTree, ImpossibleOnesAreRefused) {
  EXPECT_EQ(make_fat_tree({1, 3}, kRates).error().message,
            "ports of a fat tree must be 2 ... 2097152, not 1");
  EXPECT_EQ(make_fat_tree({4, 0}, kRates).error().message,
            "levels of a fat tree must be 1 ... 64, not 0");
  EXPECT_EQ(make_fat_tree({4, 12}, kRates).error().message,
            "a 4:12 fat tree has more than 4194304 links");
  EXPECT_FALSE(make_fat_tree({2, 64}, kRates));
  EXPECT_FALSE(make_fat_tree({2'000'000, 64}, kRates));
  EXPECT_FALSE(make_fat_tree({4, 3}, {.node = {0}, .local = kLocalRate}));
}

}  // namespace
}  // namespace vpfs::sim
