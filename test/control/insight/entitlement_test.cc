#include "control/insight/entitlement.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "control/allocation/max_min.h"

namespace vpfs::insight {
namespace {

using allocation::kUnbounded;

std::vector<Cost> entitled(Cost amount, const std::vector<Wish>& wishes) {
  std::vector<Cost> got(wishes.size());
  entitle(amount, wishes, got);
  return got;
}

TEST(Entitlement, FollowsTheWeights) {
  EXPECT_EQ(entitled(900, {{.weight = 2, .demand = kUnbounded}, {.demand = kUnbounded}}),
            (std::vector<Cost>{600, 300}));
}

TEST(Entitlement, WhatOneDoesNotWantIsForTheOthers) {
  EXPECT_EQ(entitled(900, {{.weight = 2, .demand = 100}, {.demand = kUnbounded}}),
            (std::vector<Cost>{100, 800}));
}

TEST(Entitlement, APromiseGoesBeforeTheWeights) {
  EXPECT_EQ(entitled(900, {{.demand = kUnbounded, .least = 500},
                           {.weight = 2, .demand = kUnbounded},
                           {.weight = 2, .demand = kUnbounded}}),
            (std::vector<Cost>{500, 200, 200}));
}

TEST(Entitlement, APromiseIsNotMoreThanWhatIsWanted) {
  EXPECT_EQ(entitled(900, {{.demand = 100, .least = 500}, {.demand = kUnbounded}}),
            (std::vector<Cost>{100, 800}));
}

TEST(Entitlement, MorePromisesThanThereIsGiveNoMore) {
  const std::vector<Cost> got =
      entitled(900, {{.demand = kUnbounded, .least = 800}, {.demand = kUnbounded, .least = 800}});
  EXPECT_EQ(got[0] + got[1], 900U);
}

// One of two data servers. The first has files on both and got 100 at the other; both are equal.
TEST(Entitlement, WhatOneHadElsewhereCountsAsIfItHadItHere) {
  EXPECT_EQ(entitled(100, {{.demand = kUnbounded, .elsewhere = 100}, {.demand = kUnbounded}}),
            (std::vector<Cost>{0, 100}));
  EXPECT_EQ(entitled(100, {{.demand = kUnbounded, .elsewhere = 40}, {.demand = kUnbounded}}),
            (std::vector<Cost>{30, 70}));
  EXPECT_EQ(entitled(100, {{.weight = 3, .demand = kUnbounded, .elsewhere = 200},
                           {.weight = 1, .demand = kUnbounded}}),
            (std::vector<Cost>{25, 75}));
}

TEST(Entitlement, WhatOneHadElsewhereTakesNoMinimumAwayFromIt) {
  EXPECT_EQ(entitled(100, {{.demand = kUnbounded, .least = 10, .elsewhere = 500},
                           {.demand = kUnbounded}}),
            (std::vector<Cost>{10, 90}));
}

TEST(Entitlement, IsNeverMoreThanWantedAndAllIsGiven) {
  std::mt19937_64 random(31);
  for (int run = 0; run < 2000; ++run) {
    std::vector<Wish> wishes(1 + random() % 8);
    Cost wanted = 0;
    for (Wish& wish : wishes) {
      wish = {.weight = 1 + random() % 5,
              .demand = random() % 1000,
              .least = random() % 400,
              .elsewhere = run % 2 == 0 ? 0 : random() % 1000};
      wanted += wish.demand;
    }
    const Cost amount = random() % 4000;
    const std::vector<Cost> got = entitled(amount, wishes);
    Cost sum = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_LE(got[i], wishes[i].demand);
      sum += got[i];
    }
    EXPECT_EQ(sum, std::min(amount, wanted));
  }
}

}  // namespace
}  // namespace vpfs::insight
