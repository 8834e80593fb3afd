#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/sim/cluster/network/routes.h"

namespace vpfs::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SingleSwitch, EveryNodeHasALinkToItAndOneBack) {
  const auto topology = made(make_single_switch(5, kNodeRate));
  EXPECT_EQ(topology->nodes(), 5U);
  EXPECT_EQ(topology->vertices(), 6U);
  EXPECT_EQ(topology->links().size(), 10U);
  expect_sound_routes(*topology);
  EXPECT_THAT(vertices_of(*topology, 1, 3), ElementsAre(1, 5, 3));
  EXPECT_THAT(route_of(*topology, 3, 3), IsEmpty());
  EXPECT_THAT(topology->capacities(), testing::Each(kNodeRate));
}

TEST(SingleSwitch, ImpossibleOnesAreRefused) {
  EXPECT_EQ(make_single_switch(0, kNodeRate).error().message,
            "nodes of a switch must be 1 ... 2097152, not 0");
  EXPECT_FALSE(make_single_switch(kMostLinks, kNodeRate));
  EXPECT_EQ(make_single_switch(2, {0}).error().message,
            "the rate of a node's links must be 1 ... 1125899906842624, not 0");
}

}  // namespace
}  // namespace vpfs::sim
