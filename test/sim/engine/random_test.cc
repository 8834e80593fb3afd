#include "sim/engine/random.h"

#include <array>
#include <cstdint>

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

TEST(SimRandom, ASeedGivesTheSameNumbersEverywhere) {
  Random random(1);
  const std::array<std::uint64_t, 3> first = {random.next(), random.next(), random.next()};
  // xoshiro256** with its state from splitmix64, by an implementation of its own in Python.
  const std::array<std::uint64_t, 3> expected = {0xb3f2af6d0fc710c5, 0x853b559647364cea,
                                                 0x92f89756082a4514};
  EXPECT_EQ(first, expected);
  EXPECT_NE(Random(1, 1).next(), Random(1, 2).next());
}

TEST(SimRandom, NumbersBelowABoundAreEquallyLikely) {
  constexpr std::uint64_t kBound = 10;
  constexpr int kDraws = 100'000;
  Random random(7);
  std::array<int, kBound> counts = {};
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.below(kBound));
  // Chi-square with 9 degrees of freedom: 27.9 is passed once in a thousand seeds.
  double chi_square = 0;
  for (const int count : counts) {
    const double off = count - kDraws / 10.0;
    chi_square += off * off / (kDraws / 10.0);
  }
  EXPECT_LT(chi_square, 27.9);
  EXPECT_EQ(random.below(1), 0U);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(~std::uint64_t{0}), ~std::uint64_t{0});
}

TEST(SimRandom, ExponentialTimesHaveTheirMeanAndTail) {
  constexpr int kDraws = 200'000;
  Random random(3);
  std::int64_t sum = 0;
  int above_mean = 0;
  int above_three = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Duration time = random.exponential(1ms);
    ASSERT_GE(time, Duration::zero());
    sum += time.count();
    above_mean += time > 1ms ? 1 : 0;
    above_three += time > 3ms ? 1 : 0;
  }
  // Within four standard deviations: 1/sqrt(n) for the mean; sqrt(p (1 - p) / n) for a part p.
  EXPECT_NEAR(static_cast<double>(sum) / kDraws, 1e6, 4 * 1e6 / 447.2);
  EXPECT_NEAR(above_mean / 200'000.0, 0.36788, 4 * 0.00108);
  EXPECT_NEAR(above_three / 200'000.0, 0.04979, 4 * 0.00049);
  EXPECT_EQ(random.exponential(Duration::zero()), Duration::zero());
}

}  // namespace
}  // namespace vpfs::sim
