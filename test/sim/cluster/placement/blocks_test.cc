#include "sim/cluster/placement/blocks.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

constexpr std::array<BlockWeights, 4> all_rows(const BlockWeights& row) {
  return {row, row, row, row};
}

TEST(Blocks, InputIsFirstAndOutputLast) {
  Random random(1);
  BlockProfile profile;
  profile.next = all_rows({0, 0, 0, 0, 1});
  const std::vector<Block> blocks = draw_blocks(profile, random);
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].step, Step::read);
  EXPECT_EQ(blocks[1].step, Step::write);
  for (const Block& each : blocks) {
    EXPECT_TRUE(each.is_staging);
    EXPECT_EQ(each.percent, 100U);
  }
}

TEST(Blocks, ThereAreAHundredInTheMeanAndThreeOfFourAreStorage) {
  Random random(1);
  double all = 0;
  double storage = 0;
  for (int i = 0; i < 2000; ++i) {
    for (const Block& each : draw_blocks({}, random)) {
      if (each.is_staging) continue;
      ++all;
      if (each.step == Step::read || each.step == Step::write) ++storage;
      ASSERT_TRUE(each.percent >= 1 && each.percent <= 100);
    }
  }
  EXPECT_NEAR(all / 2000, 99, 8);
  EXPECT_NEAR(storage / all, 74.0 / 99, 0.01);
}

TEST(Blocks, RowsOfTheMatrixDecideWhatFollows) {
  Random random(1);
  BlockProfile profile;
  profile.next = {{{0, 1, 0, 0, 0}, {0, 0, 0, 1, 0}, {1, 0, 0, 0, 0}, {0, 0, 0, 0, 1}}};
  std::vector<Step> steps;
  for (const Block& each : draw_blocks(profile, random)) steps.push_back(each.step);
  EXPECT_EQ(steps,
            (std::vector{Step::read, Step::compute, Step::communicate, Step::write, Step::write}));
}

TEST(Blocks, AChainThatNeverEndsIsCut) {
  Random random(1);
  BlockProfile profile;
  profile.next = all_rows({1, 0, 0, 0, 0});
  profile.most_blocks = 7;
  EXPECT_EQ(draw_blocks(profile, random).size(), 9U);
}

}  // namespace
}  // namespace vpfs::sim
