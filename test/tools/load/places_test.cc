#include "tools/load/places.h"

#include <set>

#include <gtest/gtest.h>

namespace vpfs::load {
namespace {

TEST(Places, SequentialOnesComeInOrderAndWrapAround) {
  Places places(3, Pattern::sequential, 1, false);
  EXPECT_EQ(places.take(), 0U);
  EXPECT_EQ(places.take(), 1U);
  EXPECT_EQ(places.take(), 2U);
  EXPECT_EQ(places.take(), 0U);
}

TEST(Places, RandomOnesRepeatWithTheSeed) {
  Places first(1000, Pattern::random, 7, false);
  Places second(1000, Pattern::random, 7, false);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t place = first.take();
    EXPECT_LT(place, 1000U);
    EXPECT_EQ(second.take(), place);
    seen.insert(place);
  }
  EXPECT_GT(seen.size(), 80U);
}

TEST(Places, TrackedOnesAreNeverInUseTwice) {
  for (const Pattern pattern : {Pattern::sequential, Pattern::random}) {
    Places places(5, pattern, 1, true);
    std::set<std::uint64_t> taken;
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(taken.insert(places.take()).second);
    places.give_back(*taken.begin());
    taken.erase(taken.begin());
    EXPECT_TRUE(taken.insert(places.take()).second);
  }
}

TEST(Places, GenerationsCountWritesAndFailedOnesLeaveNothingKnown) {
  Places places(2, Pattern::sequential, 1, true);
  EXPECT_EQ(places.generation(0), 0U);
  EXPECT_EQ(places.next_generation(0), 1U);
  places.written(0);
  EXPECT_EQ(places.generation(0), 1U);
  places.lost_track_of(0);
  EXPECT_EQ(places.generation(0), 0U);
  EXPECT_EQ(places.next_generation(0), 3U);
  places.written(0);
  EXPECT_EQ(places.generation(0), 3U);
  EXPECT_EQ(places.generation(1), 0U);
}

TEST(Places, ChanceKeepsItsPercentage) {
  Places places(1, Pattern::random, 1, false);
  int hits = 0;
  for (int i = 0; i < 10000; ++i) hits += places.chance(30) ? 1 : 0;
  EXPECT_NEAR(hits, 3000, 200);
  EXPECT_FALSE(places.chance(0));
  EXPECT_TRUE(places.chance(100));
}

}  // namespace
}  // namespace vpfs::load
