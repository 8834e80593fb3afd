#include <algorithm>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/sim/cluster/network/routes.h"

namespace vpfs::sim {
namespace {

using ::testing::ElementsAre;

// Hops between two places of a ring.
std::uint64_t ring_distance(std::uint64_t one, std::uint64_t other, std::uint64_t length) {
  const std::uint64_t up = (other + length - one) % length;
  return std::min(up, length - up);
}

TEST(Torus, RoutesAreAsShortAsTheRingsAllow) {
  for (const TorusSize size : {TorusSize{4, 4, 4}, TorusSize{5, 3, 2}, TorusSize{1, 6, 1},
                               TorusSize{2, 2, 2}, TorusSize{1, 1, 1}}) {
    const auto torus = made(make_torus(size, kRates));
    ASSERT_EQ(torus->nodes(), size.x * size.y * size.z);
    expect_sound_routes(*torus);
    for (NodeId from = 0; from < torus->nodes(); ++from) {
      for (NodeId to = 0; to < torus->nodes(); ++to) {
        if (from == to) continue;
        const std::uint64_t hops =
            ring_distance(from % size.x, to % size.x, size.x) +
            ring_distance(from / size.x % size.y, to / size.x % size.y, size.y) +
            ring_distance(from / size.x / size.y, to / size.x / size.y, size.z);
        ASSERT_EQ(route_of(*torus, from, to).size(), hops + 2) << from << " to " << to;
      }
    }
  }
}

TEST(Torus, RoutesGoThroughTheDimensionsInOrder) {
  const auto torus = made(make_torus({4, 4, 4}, kRates));
  // From (0, 0, 0) to (3, 1, 2): one down, one up, two up since both ways are equal.
  EXPECT_THAT(vertices_of(*torus, 0, 3 + 4 + 32),
              ElementsAre(0, 64 + 0, 64 + 3, 64 + 7, 64 + 23, 64 + 39, 39));
  // And back: up, down, and again two up.
  EXPECT_THAT(vertices_of(*torus, 39, 0),
              ElementsAre(39, 64 + 39, 64 + 36, 64 + 32, 64 + 48, 64 + 0, 0));
}

TEST(Torus, ASwitchHasALinkInEachDirection) {
  EXPECT_EQ(made(make_torus({4, 4, 4}, kRates))->links().size(), 64U * (2 + 6));
  EXPECT_EQ(made(make_torus({8, 8, 8}, kRates))->links().size(), 512U * (2 + 6));
  EXPECT_EQ(made(make_torus({3, 2, 1}, kRates))->links().size(), 6U * (2 + 2 + 1))
      << "two switches have one cable";
  const auto torus = made(make_torus({4, 4, 4}, kRates));
  for (const NetworkLink& link : torus->links()) {
    const bool is_of_node = link.from < torus->nodes() || link.to < torus->nodes();
    EXPECT_EQ(link.capacity, is_of_node ? kNodeRate : kLocalRate);
  }
}

TEST(Torus, ImpossibleOnesAreRefused) {
  EXPECT_EQ(make_torus({4, 0, 4}, kRates).error().message,
            "y of a torus must be 1 ... 524288, not 0");
  EXPECT_EQ(make_torus({1024, 1024, 1}, kRates).error().message,
            "nodes of a torus, x * y, must be 1 ... 524288, not 1048576");
  EXPECT_EQ(make_torus({512, 512, 512}, kRates).error().message,
            "nodes of a torus, x * y * z, must be 1 ... 524288, not 134217728");
  EXPECT_FALSE(make_torus({~0ULL, 2, 2}, kRates));
  EXPECT_FALSE(make_torus({2, 2, 2}, {.node = kNodeRate, .local = {0}}));
  EXPECT_FALSE(make_torus({2, 2, 2}, {.node = {LinkRates::kMost + 1}, .local = kLocalRate}));
}

}  // namespace
}  // namespace vpfs::sim
