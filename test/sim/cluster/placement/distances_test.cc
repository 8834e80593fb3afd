#include "sim/cluster/placement/distances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/cluster/network/topologies.h"

namespace vpfs::sim {
namespace {

using ::testing::ElementsAre;

class DistancesTest : public testing::Test {
 protected:
  std::unique_ptr<const Topology> ring_ =
      make_torus({8, 1, 1}, {.node = {1}, .local = {1}, .global = {1}}).value();
  Distances distances_{*ring_};
};

TEST_F(DistancesTest, NodesNearAPlaceAreFirst) {
  std::vector<NodeId> nodes = {0, 1, 2, 3, 4, 5, 6, 7};
  distances_.order_from(std::vector<NodeId>{6}, nodes);
  EXPECT_THAT(nodes, ElementsAre(6, 5, 7, 0, 4, 1, 3, 2));
}

TEST_F(DistancesTest, NodesWithAPlaceOfTheirOwnAreFirst) {
  std::vector<NodeId> nodes = {0, 1, 3, 4, 5};
  distances_.order_from(std::vector<NodeId>{1, 4}, nodes);
  EXPECT_THAT(nodes, ElementsAre(1, 4, 3, 0, 5)) << "node 3 is nearer to both";
}

TEST_F(DistancesTest, AroundTheBestNodeWaysAreShort) {
  std::vector<NodeId> nodes = {0, 2, 4, 5, 6};
  distances_.order_around_best(nodes, 3);
  nodes.resize(3);
  EXPECT_THAT(nodes, ElementsAre(5, 4, 6));
}

}  // namespace
}  // namespace vpfs::sim
