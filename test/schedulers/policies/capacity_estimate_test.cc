#include "schedulers/policies/capacity_estimate.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "base/units.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSpeed = 100 * kMiB;

// A tenth of a second in which the server did `rate` each second.
CapacityEstimate::Period under_load(std::uint64_t rate) {
  return {.length = 100ms, .done = rate / 10, .always_queued = true};
}
CapacityEstimate::Period waiting_for_tokens(std::uint64_t rate) {
  return {.length = 100ms, .done = rate / 10, .always_queued = true, .waited_for_tokens = true};
}
CapacityEstimate::Period with_little_to_do(std::uint64_t rate) {
  return {.length = 100ms, .done = rate / 10};
}

TEST(CapacityEstimate, AConfiguredOneNeverMoves) {
  CapacityEstimate estimate({.configured = kSpeed});
  EXPECT_EQ(estimate.value(), kSpeed);
  estimate.observe(under_load(10 * kSpeed));
  estimate.observe(waiting_for_tokens(10 * kSpeed));
  EXPECT_EQ(estimate.value(), kSpeed);
  EXPECT_EQ(estimate.source(), "configured");
}

TEST(CapacityEstimate, NothingIsKnownBeforeSomethingIsDone) {
  CapacityEstimate estimate({});
  EXPECT_EQ(estimate.value(), 0U);
  EXPECT_EQ(estimate.source(), "nothing measured yet");
  estimate.observe(with_little_to_do(0));
  EXPECT_EQ(estimate.value(), 0U);
  estimate.observe(under_load(kSpeed));
  EXPECT_EQ(estimate.value(), kSpeed);
  EXPECT_EQ(estimate.source(), "measured");
}

TEST(CapacityEstimate, UnderLoadItFollowsTheServerByAQuarter) {
  CapacityEstimate estimate({});
  estimate.observe(under_load(kSpeed));
  estimate.observe(under_load(2 * kSpeed));
  EXPECT_EQ(estimate.value(), kSpeed * 5 / 4);
  estimate.observe(under_load(kSpeed / 4));
  EXPECT_EQ(estimate.value(), kSpeed);
}

TEST(CapacityEstimate, WithLittleToDoItOnlyRises) {
  CapacityEstimate estimate({});
  estimate.observe(with_little_to_do(kSpeed));
  estimate.observe(with_little_to_do(kSpeed / 2));
  EXPECT_EQ(estimate.value(), kSpeed);
  estimate.observe(with_little_to_do(2 * kSpeed));
  EXPECT_EQ(estimate.value(), 2 * kSpeed);
}

TEST(CapacityEstimate, WhileRequestsWaitForTokensItRisesEverFasterUpToAnEighth) {
  CapacityEstimate estimate({});
  estimate.observe(under_load(kSpeed));
  std::uint64_t expected = kSpeed;
  for (const std::uint64_t part : {64U, 32U, 16U, 8U, 8U, 8U}) {
    estimate.observe(waiting_for_tokens(expected / 10 * 10));
    expected += expected / part;
    EXPECT_EQ(estimate.value(), expected);
  }
  estimate.observe(under_load(kSpeed));
  const std::uint64_t before = estimate.value();
  estimate.observe(waiting_for_tokens(kSpeed));
  EXPECT_EQ(estimate.value(), before + before / 64) << "from the start again";
}

TEST(CapacityEstimate, ShortPeriodsAreTakenTogether) {
  CapacityEstimate estimate({});
  estimate.observe(under_load(kSpeed));
  // One request of 4 MiB each 40 ms: not 4000 MiB/s for a millisecond and nothing for 39.
  for (int i = 1; i <= 4000; ++i) {
    estimate.observe({.length = 1ms, .done = i % 40 == 0 ? 4 * kMiB : 0, .always_queued = true});
    ASSERT_NEAR(static_cast<double>(estimate.value()) / kSpeed, 1, 0.1) << i;
  }
  // A condition of one of them holds for all of them.
  const std::uint64_t before = estimate.value();
  for (int i = 0; i < 200; ++i) {
    estimate.observe({.length = 1ms, .done = kSpeed / 2000, .always_queued = i != 20});
  }
  EXPECT_EQ(estimate.value(), before - before / 4 + kSpeed / 2000 * 250) << "the second hundred";
}

TEST(CapacityEstimate, AServerThatHangsForAWhileIsNotForgotten) {
  CapacityEstimate estimate({});
  estimate.observe(under_load(kSpeed));
  for (int i = 0; i < 100; ++i) estimate.observe(under_load(0));
  EXPECT_EQ(estimate.value(), kSpeed);
  estimate.observe(under_load(kSpeed));
  EXPECT_GE(estimate.value(), kSpeed * 3 / 4);
}

TEST(CapacityEstimate, ItStaysBetweenItsLimits) {
  CapacityEstimate estimate({.least = kSpeed / 2, .most = 2 * kSpeed});
  estimate.observe(under_load(kSpeed / 10));
  EXPECT_EQ(estimate.value(), kSpeed / 2);
  EXPECT_EQ(estimate.source(), "measured, at the lower limit");
  estimate.observe(with_little_to_do(kSpeed));
  EXPECT_EQ(estimate.value(), kSpeed);
  EXPECT_EQ(estimate.source(), "measured");
  for (int i = 0; i < 20; ++i) estimate.observe(waiting_for_tokens(kSpeed));
  EXPECT_EQ(estimate.value(), 2 * kSpeed);
  EXPECT_EQ(estimate.source(), "measured, at the upper limit");
  for (int i = 0; i < 20; ++i) estimate.observe(under_load(kSpeed));
  EXPECT_LT(estimate.value(), kSpeed * 105 / 100) << "a limit is not sticky";
}

// A server that does what it is given, up to its speed. It is given the estimate.
TEST(CapacityEstimate, IsWithinFivePercentOfTheServerAfterThirtyPeriods) {
  constexpr std::uint64_t kSeed = 1;
  std::mt19937_64 random(kSeed);
  double worst = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t speed = (1 + random() % 4000) * kMiB;
    CapacityEstimate estimate({.least = 1, .most = std::uint64_t{1} << 40});
    // From a tenth to ten times of it.
    estimate.observe(with_little_to_do(speed / 10 * (1 + random() % 100)));
    for (int period = 0; period < 130; ++period) {
      const std::uint64_t given = estimate.value();
      estimate.observe(given < speed ? waiting_for_tokens(given) : under_load(speed));
      const double error =
          std::abs(static_cast<double>(estimate.value()) / static_cast<double>(speed) - 1);
      if (period >= 30) worst = std::max(worst, error);
      ASSERT_LT(error, period < 30 ? 10 : 0.05) << "seed " << kSeed << ", round " << round;
    }
  }
  std::cout << "seed " << kSeed << ": worst error " << worst << "\n";
}

TEST(CapacityEstimate, NothingOverflowsWhateverItSees) {
  constexpr std::uint64_t kSeed = 2;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 500; ++round) {
    CapacityEstimate::Settings settings = {.least = random() >> (random() % 64)};
    settings.most = settings.least + (random() >> (1 + random() % 63));
    settings.most = std::max(settings.most, settings.least);
    CapacityEstimate estimate(settings);
    for (int i = 0; i < 100; ++i) {
      estimate.observe(
          {.length = Duration(static_cast<std::int64_t>(random() >> (8 + random() % 56))),
           .done = random() >> (8 + random() % 56),
           .always_queued = random() % 2 == 0,
           .waited_for_tokens = random() % 2 == 0});
      if (estimate.value() == 0) continue;
      ASSERT_GE(estimate.value(), settings.least) << "seed " << kSeed << ", round " << round;
      ASSERT_LE(estimate.value(), settings.most) << "seed " << kSeed << ", round " << round;
    }
  }
}

}  // namespace
}  // namespace vpfs
