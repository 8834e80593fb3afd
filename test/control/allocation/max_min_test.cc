#include "control/allocation/max_min.h"

#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>

namespace vpfs::allocation {
namespace {

using ::testing::ElementsAre;

struct Filled {
  std::vector<std::uint64_t> got;
  std::uint64_t left;
};

Filled fill(std::uint64_t amount, const std::vector<Claim>& claims) {
  MaxMin max_min;
  Filled filled = {.got = std::vector<std::uint64_t>(claims.size(), 77), .left = 0};
  filled.left = max_min.fill(amount, claims, filled.got);
  return filled;
}

TEST(MaxMin, AClaimBelowTheShareGetsAllAndTheOthersDivideTheRestByWeight) {
  const Filled filled = fill(100, {{.weight = 1, .demand = 10},
                                   {.weight = 2, .demand = kUnbounded},
                                   {.weight = 1, .demand = kUnbounded}});
  EXPECT_THAT(filled.got, ElementsAre(10, 60, 30));
  EXPECT_EQ(filled.left, 0U);
}

TEST(MaxMin, WhatIsNotClaimedIsLeft) {
  const Filled filled = fill(100, {{.weight = 5, .demand = 10}, {.weight = 1, .demand = 20}});
  EXPECT_THAT(filled.got, ElementsAre(10, 20));
  EXPECT_EQ(filled.left, 70U);
  EXPECT_EQ(fill(9, {}).left, 9U);
}

TEST(MaxMin, AClaimAboveTheShareGetsNoMoreThanTheShare) {
  // 30 fits exactly where 90 are divided by three.
  EXPECT_THAT(fill(90, {{.demand = 31}, {.demand = 30}, {.demand = 500}}).got,
              ElementsAre(30, 30, 30));
}

TEST(MaxMin, SingleUnitsGoToTheLargestRemaindersAndTiesToTheFirst) {
  EXPECT_THAT(fill(5, {{.demand = kUnbounded}, {.demand = kUnbounded}, {.demand = kUnbounded}}).got,
              ElementsAre(2, 2, 1));
  // 10 * 1 / 7 = 1 3/7, 10 * 2 / 7 = 2 6/7, 10 * 4 / 7 = 5 5/7: two units are missing.
  EXPECT_THAT(fill(10, {{.weight = 1, .demand = kUnbounded},
                        {.weight = 2, .demand = kUnbounded},
                        {.weight = 4, .demand = kUnbounded}})
                  .got,
              ElementsAre(1, 3, 6));
  EXPECT_THAT(fill(0, {{.demand = kUnbounded}, {.demand = 3}}).got, ElementsAre(0, 0));
}

TEST(MaxMin, LargestNumbersDoNotOverflow) {
  const Filled filled = fill(kMostAmount, {{.weight = kMostAmount / 2, .demand = kMostAmount},
                                           {.weight = kMostAmount / 2, .demand = kUnbounded}});
  EXPECT_THAT(filled.got, ElementsAre(kMostAmount / 2, kMostAmount / 2));
}

// No claim could have more without taking it from one that has less for its weight.
TEST(MaxMin, IsMaxMinFair) {
  std::mt19937_64 random(7);
  MaxMin max_min;
  for (int round = 0; round < 2000; ++round) {
    std::vector<Claim> claims(1 + random() % 12);
    for (Claim& each : claims) {
      each.weight = 1 + random() % 9;
      each.demand = random() % 4 == 0 ? kUnbounded : random() % 1000;
    }
    const std::uint64_t amount = random() % 4000;
    std::vector<std::uint64_t> got(claims.size());
    const std::uint64_t left = max_min.fill(amount, claims, got);
    EXPECT_EQ(std::accumulate(got.begin(), got.end(), left), amount);
    for (std::size_t i = 0; i < claims.size(); ++i) {
      EXPECT_LE(got[i], claims[i].demand);
      if (got[i] == claims[i].demand) continue;
      EXPECT_EQ(left, 0U);
      for (std::size_t other = 0; other < claims.size(); ++other) {
        if (got[other] == 0) continue;
        // A unit is all that rounding makes.
        EXPECT_LE((got[other] - 1) * claims[i].weight, (got[i] + 1) * claims[other].weight);
      }
    }
  }
}

}  // namespace
}  // namespace vpfs::allocation
