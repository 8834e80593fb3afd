#include "stage/statistics.h"

#include <gtest/gtest.h>

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;

TEST(Statistic, CountsWhatLustreShows) {
  Statistic statistic;
  for (const std::uint64_t value : {7U, 3U, 10U}) statistic.add(value);
  EXPECT_EQ(statistic.samples, 3U);
  EXPECT_EQ(statistic.min, 3U);
  EXPECT_EQ(statistic.max, 10U);
  EXPECT_EQ(statistic.sum, 20U);
  EXPECT_TRUE(statistic.sum_of_squares == 49 + 9 + 100);
}

TEST(Statistic, ZeroIsASampleToo) {
  Statistic statistic;
  statistic.add(5);
  statistic.add(0);
  EXPECT_EQ(statistic.min, 0U);
  EXPECT_EQ(statistic.samples, 2U);
}

TEST(Statistic, SquaresOfLargeValuesDoNotOverflow) {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 40;
  Statistic statistic;
  for (int i = 0; i < 1000; ++i) statistic.add(kLarge);
  EXPECT_TRUE(statistic.sum_of_squares == Wide{kLarge} * kLarge * 1000);
}

TEST(Statistic, SumsStayAtTheirLargestValue) {
  Statistic statistic;
  for (int i = 0; i < 3; ++i) statistic.add(UINT64_MAX);
  EXPECT_EQ(statistic.sum, UINT64_MAX);
  EXPECT_TRUE(statistic.sum_of_squares == ~Wide{0});
  Statistic other = statistic;
  other.merge(statistic);
  EXPECT_EQ(other.sum, UINT64_MAX);
  EXPECT_TRUE(other.sum_of_squares == ~Wide{0});
  EXPECT_EQ(other.samples, 6U);
}

TEST(Statistic, MergingAddsAsIfAllHadBeenAddedToOne) {
  Statistic one;
  Statistic two;
  Statistic all;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    (i % 3 == 0 ? one : two).add(i * i);
    all.add(i * i);
  }
  one.merge(two);
  one.merge(Statistic{});
  EXPECT_EQ(one.samples, all.samples);
  EXPECT_EQ(one.min, all.min);
  EXPECT_EQ(one.max, all.max);
  EXPECT_EQ(one.sum, all.sum);
  EXPECT_TRUE(one.sum_of_squares == all.sum_of_squares);
  Statistic empty;
  empty.merge(all);
  EXPECT_EQ(empty.min, 1U);
}

TEST(IoStatistics, ReadsAndWritesAreApartAndMetadataDoesNotCount) {
  constexpr TimePoint kStart(100s);
  IoStatistics statistics{.since = kStart, .last = kStart};
  statistics.record(IoKind::read, {4096}, 1500ns, kStart + 1s);
  statistics.record(IoKind::write, {10}, 3ms, kStart + 2s);
  statistics.record(IoKind::metadata, {}, 3ms, kStart + 3s);
  EXPECT_EQ(statistics.read_bytes.sum, 4096U);
  EXPECT_EQ(statistics.read_time.sum, 1U) << "microseconds";
  EXPECT_EQ(statistics.write_bytes.samples, 1U);
  EXPECT_EQ(statistics.write_time.max, 3000U);
  EXPECT_EQ(statistics.last, kStart + 2s);
}

TEST(IoStatistics, MergingKeepsTheFirstAndTheLastTime) {
  IoStatistics sum;
  IoStatistics late{.since = TimePoint(50s), .last = TimePoint(60s)};
  late.record(IoKind::read, {1}, 1us, TimePoint(70s));
  sum.merge(late);
  EXPECT_EQ(sum.since, TimePoint(50s));
  sum.merge({.since = TimePoint(10s), .last = TimePoint(20s)});
  EXPECT_EQ(sum.since, TimePoint(10s));
  EXPECT_EQ(sum.last, TimePoint(70s));
  EXPECT_EQ(sum.read_bytes.samples, 1U);
}

}  // namespace
}  // namespace vpfs::stage
