#include "base/histogram.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "base/saved/saved_state.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

TEST(LatencyHistogram, AnEmptyOneAnswersZero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.quantile(0.5), Duration::zero());
  EXPECT_EQ(histogram.mean(), Duration::zero());
  EXPECT_TRUE(histogram.buckets().empty());
}

TEST(LatencyHistogram, EveryQuantileIsAtMostASixteenthAboveTheTrueOne) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(std::log(1e3), std::log(3.6e12));
  LatencyHistogram histogram;
  std::vector<Duration> values(20'000);
  for (Duration& value : values) {
    value = Duration(static_cast<std::int64_t>(std::exp(exponent(random))));
    histogram.record(value);
  }
  std::ranges::sort(values);
  for (const double q : {0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.9999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(q * 20'000));
    const auto exact = static_cast<double>(values[rank == 0 ? 0 : rank - 1].count());
    const auto shown = static_cast<double>(histogram.quantile(q).count());
    EXPECT_GE(shown, exact) << "q = " << q;
    EXPECT_LE(shown, exact * 1.0625 + 64) << "q = " << q;
  }
  EXPECT_EQ(histogram.max(), values.back());
}

TEST(LatencyHistogram, EdgesOfBucketsHoldTheirValues) {
  for (std::int64_t ns = 1; ns < std::int64_t{1} << 42; ns *= 2) {
    for (const std::int64_t near : {ns - 1, ns, ns + 1}) {
      LatencyHistogram histogram;
      histogram.record(Duration(near));
      histogram.record(Duration(2 * near + 1));
      EXPECT_GE(histogram.quantile(0.5).count(), near);
      EXPECT_LE(histogram.quantile(0.5).count(), std::max<std::int64_t>(near + 64, near * 17 / 16));
    }
  }
}

TEST(LatencyHistogram, NoQuantileIsAboveTheMaximum) {
  for (const Duration only : {Duration(1), Duration(1025), Duration(70'001), Duration(100h)}) {
    LatencyHistogram histogram;
    histogram.record(only);
    for (const double q : {0.0, 0.5, 0.99, 1.0}) EXPECT_EQ(histogram.quantile(q), only);
  }
}

TEST(LatencyHistogram, LongerThanTheLastBucketCountsInIt) {
  LatencyHistogram histogram;
  histogram.record(100h);
  histogram.record(Duration(-5));
  EXPECT_EQ(histogram.count(), 2U);
  EXPECT_EQ(histogram.max(), Duration(100h));
  EXPECT_EQ(histogram.quantile(1), Duration(100h));
  EXPECT_LE(histogram.quantile(0), Duration(64));
}

// The histogram grows at both ends.
TEST(LatencyHistogram, TheOrderInWhichDurationsComeChangesNothing) {
  const std::vector<Duration> values = {1ms, 30us, 2h, Duration(5), 7s, 900us, 30us};
  std::vector<Duration> sorted = values;
  std::ranges::sort(sorted);
  LatencyHistogram as_they_come;
  LatencyHistogram upwards;
  LatencyHistogram downwards;
  for (const Duration value : values) as_they_come.record(value);
  for (const Duration value : sorted) upwards.record(value);
  std::ranges::reverse(sorted);
  LatencyHistogram single;
  for (const Duration value : sorted) {
    single.clear();
    single.record(value);
    downwards.merge(single);
  }
  const auto listed = [](const LatencyHistogram& histogram) {
    std::vector<std::pair<Duration, std::uint64_t>> all;
    for (const auto& bucket : histogram.buckets()) all.emplace_back(bucket.upper, bucket.count);
    return all;
  };
  EXPECT_EQ(listed(upwards).size(), 6U);
  EXPECT_TRUE(std::ranges::is_sorted(listed(upwards)));
  EXPECT_EQ(listed(as_they_come), listed(upwards));
  EXPECT_EQ(listed(downwards), listed(upwards));
  EXPECT_EQ(as_they_come.quantile(0.5), upwards.quantile(0.5));
}

TEST(LatencyHistogram, MergingAddsEverything) {
  LatencyHistogram a;
  LatencyHistogram b;
  a.record(1ms);
  b.record(3ms);
  b.record(8ms);
  a.merge(b);
  EXPECT_EQ(a.count(), 3U);
  EXPECT_EQ(a.mean(), Duration(4ms));
  EXPECT_EQ(a.max(), Duration(8ms));
  EXPECT_EQ(a.buckets().size(), 3U);
  a.clear();
  EXPECT_EQ(a.count(), 0U);
  EXPECT_EQ(a.max(), Duration::zero());
}

// A thousand requests that wait for a year each.
TEST(LatencyHistogram, SumsAreLongerThanNanosecondsCanSay) {
  constexpr std::uint64_t kRequests = 1000;
  const auto year = 24h * 365;
  LatencyHistogram histogram;
  for (std::uint64_t i = 0; i < kRequests; ++i) histogram.record(year + Duration(500));
  const LongDuration sum = LongDuration(year) * kRequests + LongDuration(kRequests / 2);
  EXPECT_EQ(histogram.sum(), sum);
  EXPECT_EQ(histogram.mean(), year + Duration(500));

  LatencyHistogram twice = histogram;
  twice.merge(histogram);
  EXPECT_EQ(twice.sum(), 2 * sum);
  EXPECT_EQ(twice.mean(), histogram.mean());

  SavedState saved;
  StateWriter(saved).all_of(twice);
  LatencyHistogram restored;
  StateReader(saved).all_of(restored);
  EXPECT_EQ(restored.sum(), twice.sum());
}

TEST(LatencyHistogram, TakesTheSumOfAnEarlierVersion) {
  LatencyHistogram histogram;
  histogram.record(2h);
  SavedState saved;
  StateWriter(saved).all_of(histogram);
  SavedState earlier;
  earlier.set("buckets", saved.number("buckets"));
  earlier.set("first", saved.number("first"));
  earlier.set("counts", *saved.find<SavedState::Numbers>("counts"));
  earlier.set("count", saved.number("count"));
  earlier.set("sum", static_cast<std::uint64_t>(Duration(2h).count()));
  earlier.set("max", saved.number("max"));
  LatencyHistogram restored;
  StateReader(earlier).all_of(restored);
  EXPECT_EQ(restored.sum(), LongDuration(2h));
  EXPECT_EQ(saved.number("sum"), earlier.number("sum")) << "which an earlier version takes, too";
}

}  // namespace
}  // namespace vpfs
