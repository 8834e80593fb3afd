#include "sim/cluster/placement/profile.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

double count(const std::vector<Step>& steps, Step step) {
  return static_cast<double>(std::ranges::count(steps, step));
}

TEST(SimProfile, StepsAreDrawnByTheirProbabilities) {
  Random random(1);
  const std::vector<Step> steps = draw_steps({.steps = 100'000}, random);
  ASSERT_EQ(steps.size(), 100'000U);
  EXPECT_NEAR(count(steps, Step::read), 37'500, 600);
  EXPECT_NEAR(count(steps, Step::write), 37'500, 600);
  EXPECT_NEAR(count(steps, Step::compute), 12'500, 400);
  EXPECT_NEAR(count(steps, Step::communicate), 12'500, 400);
}

TEST(SimProfile, APermutationHasEachNumberOnce) {
  Random random(1);
  std::vector<std::uint32_t> numbers = draw_permutation(1000, random);
  EXPECT_FALSE(std::ranges::is_sorted(numbers));
  std::ranges::sort(numbers);
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(numbers[i], i);
  EXPECT_TRUE(draw_permutation(0, random).empty());
}

}  // namespace
}  // namespace vpfs::sim
