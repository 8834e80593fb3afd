#include "sim/placement/profile.h"

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

// Whatever the pattern is, a task sends and hears at most what the profile says.
TEST(SimProfile, MessagesAddUp) {
  Random random(1);
  for (const Pattern pattern :
       {Pattern::permutation, Pattern::neighbours, Pattern::all_to_all, Pattern::ring}) {
    for (const std::uint32_t tasks : {1U, 2U, 3U, 64U}) {
      const Profile profile{.tasks = tasks, .message_bytes = {1000}, .pattern = pattern};
      std::vector<std::uint64_t> sent(tasks);
      std::vector<std::uint64_t> heard(tasks);
      for (const Message& each : draw_messages(profile, random)) {
        EXPECT_NE(each.from, each.to);
        sent[each.from] += each.size.count;
        heard[each.to] += each.size.count;
      }
      EXPECT_EQ(sent, heard);
      for (const std::uint64_t each : sent) {
        const bool may_be_silent = tasks == 1 || pattern == Pattern::permutation;
        EXPECT_TRUE(each == 1000 || (may_be_silent && each == 0)) << each;
      }
    }
  }
}

}  // namespace
}  // namespace vpfs::sim
