#include "tools/load/slots.h"

#include <set>

#include <gtest/gtest.h>

namespace vpfs::load {
namespace {

TEST(Slots, SequentialOnesComeInOrderAndWrapAround) {
  Slots slots(3, Pattern::sequential, 1, false);
  EXPECT_EQ(slots.take(), 0U);
  EXPECT_EQ(slots.take(), 1U);
  EXPECT_EQ(slots.take(), 2U);
  EXPECT_EQ(slots.take(), 0U);
}

TEST(Slots, RandomOnesRepeatWithTheSeed) {
  Slots first(1000, Pattern::random, 7, false);
  Slots second(1000, Pattern::random, 7, false);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t slot = first.take();
    EXPECT_LT(slot, 1000U);
    EXPECT_EQ(second.take(), slot);
    seen.insert(slot);
  }
  EXPECT_GT(seen.size(), 80U);
}

TEST(Slots, TrackedOnesAreNeverInUseTwice) {
  for (const Pattern pattern : {Pattern::sequential, Pattern::random}) {
    Slots slots(5, pattern, 1, true);
    std::set<std::uint64_t> taken;
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(taken.insert(slots.take()).second);
    slots.give_back(*taken.begin());
    taken.erase(taken.begin());
    EXPECT_TRUE(taken.insert(slots.take()).second);
  }
}

TEST(Slots, GenerationsCountWritesAndFailedOnesLeaveNothingKnown) {
  Slots slots(2, Pattern::sequential, 1, true);
  EXPECT_EQ(slots.generation(0), 0U);
  EXPECT_EQ(slots.next_generation(0), 1U);
  slots.written(0);
  EXPECT_EQ(slots.generation(0), 1U);
  slots.lost_track_of(0);
  EXPECT_EQ(slots.generation(0), 0U);
  EXPECT_EQ(slots.next_generation(0), 3U);
  slots.written(0);
  EXPECT_EQ(slots.generation(0), 3U);
  EXPECT_EQ(slots.generation(1), 0U);
}

TEST(Slots, ChanceKeepsItsPercentage) {
  Slots slots(1, Pattern::random, 1, false);
  int hits = 0;
  for (int i = 0; i < 10000; ++i) hits += slots.chance(30) ? 1 : 0;
  EXPECT_NEAR(hits, 3000, 200);
  EXPECT_FALSE(slots.chance(0));
  EXPECT_TRUE(slots.chance(100));
}

}  // namespace
}  // namespace vpfs::load
