#include "control/insight/series.h"

#include <chrono>
#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/stage/history/activities.h"

namespace vpfs::insight {
namespace {

using stage::Measure;
using std::chrono::seconds;
using ::testing::ElementsAre;

class SeriesTest : public ::testing::Test {
 protected:
  // Each second `count` virtual PFSes move bytes: that of number i moves i kB.
  void run(int time, std::uint32_t count) {
    for (int second = 0; second < time; ++second) {
      for (std::uint32_t i = 1; i <= count; ++i) {
        activities_.moves(activities_.reading(i), std::uint64_t{i} * 1000);
      }
      activities_.end_second(history_);
    }
  }
  Series series(seconds back, SeriesSize size) {
    return series_of(history_, activities_.now() - back, activities_.now(), size);
  }
  static std::uint64_t sum(const Series::Line& line) {
    std::uint64_t all = 0;
    for (const stage::Measures& at : line.at) all += at.of(Measure::read_bytes);
    return all;
  }

  stage::Activities activities_;
  stage::History history_;
};

TEST_F(SeriesTest, TheBusiestHaveALineAndTheOthersOneTogether) {
  run(10, 5);
  const Series made = series(seconds(10), {.points = 100, .lines = 2});
  ASSERT_EQ(made.lines.size(), 2U);
  EXPECT_EQ(made.lines[0].name, "vpfs-5");
  EXPECT_EQ(made.lines[1].name, "vpfs-4");
  EXPECT_EQ(made.points.size(), 10U);
  EXPECT_EQ(sum(made.lines[0]), 50'000U);
  EXPECT_EQ(sum(made.others), 60'000U);
  for (const Series::Line* line : {&made.lines[0], &made.lines[1], &made.others}) {
    EXPECT_EQ(line->at.size(), made.points.size());
  }
}

TEST_F(SeriesTest, TooManySpansAreAddedUp) {
  run(100, 1);
  const Series made = series(seconds(100), {.points = 10, .lines = 3});
  ASSERT_EQ(made.points.size(), 10U);
  EXPECT_EQ(made.points[0].length, seconds(10));
  EXPECT_EQ(made.points[1].begin - made.points[0].begin, seconds(10));
  EXPECT_EQ(sum(made.lines[0]), 100'000U);
}

TEST_F(SeriesTest, NoPointGoesOverATimeWhenTheProgramWasDown) {
  run(30, 1);
  activities_.is_down(seconds(600));
  const WallTime up = activities_.now();
  run(30, 1);
  const Series made = series(seconds(660), {.points = 5, .lines = 3});
  ASSERT_EQ(made.points.size(), 6U);
  EXPECT_EQ(made.points[2].length, seconds(6));
  EXPECT_EQ(made.points[3].begin, up);
  EXPECT_EQ(made.points[3].length, seconds(12));
}

TEST_F(SeriesTest, OneThatBeganLateHasNothingBefore) {
  run(3, 1);
  run(2, 2);
  const Series made = series(seconds(5), {.points = 50, .lines = 5});
  ASSERT_EQ(made.lines.size(), 2U);
  std::vector<std::uint64_t> late;
  for (const stage::Measures& at : made.lines[1].at) late.push_back(at.of(Measure::read_bytes));
  EXPECT_EQ(made.lines[1].name, "vpfs-2");
  EXPECT_THAT(late, ElementsAre(0, 0, 0, 2000, 2000));
}

TEST_F(SeriesTest, WithoutAHistoryThereIsNothing) {
  const Series made = series(seconds(60), {});
  EXPECT_TRUE(made.points.empty());
  EXPECT_TRUE(made.lines.empty());
  EXPECT_TRUE(made.others.at.empty());
}

}  // namespace
}  // namespace vpfs::insight
