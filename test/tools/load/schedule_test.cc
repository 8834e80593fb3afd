#include "tools/load/schedule.h"

#include <gtest/gtest.h>

namespace vpfs::load {
namespace {

using namespace std::chrono_literals;

TEST(Schedule, WithoutTimesIsActiveUntilTheEndOfTheRun) {
  const RunEnd end(10s);
  const Schedule schedule({}, end);
  EXPECT_EQ(schedule.next(0s), 0s);
  EXPECT_EQ(schedule.next(9999ms), 9999ms);
  EXPECT_EQ(schedule.next(10s), std::nullopt);
}

TEST(Schedule, WaitsForTheStartAndEndsAtTheStop) {
  const RunEnd end(10s);
  const Schedule schedule({.start = 2s, .stop = 5s}, end);
  EXPECT_EQ(schedule.next(0s), 2s);
  EXPECT_EQ(schedule.next(3s), 3s);
  EXPECT_EQ(schedule.next(5s), std::nullopt);
}

TEST(Schedule, IsActiveOnlyInItsBursts) {
  const RunEnd end(10s);
  const Schedule schedule({.start = 1s, .burst = Burst{.length = 200ms, .interval = 1s}}, end);
  EXPECT_EQ(schedule.next(0s), 1s);
  EXPECT_EQ(schedule.next(1100ms), 1100ms);
  EXPECT_EQ(schedule.next(1200ms), 2s);
  EXPECT_EQ(schedule.next(1999ms), 2s);
  EXPECT_EQ(schedule.next(9200ms), std::nullopt);
}

TEST(Schedule, EndsWhenTheRunIsEndedEarly) {
  RunEnd end(10s);
  const Schedule schedule({.start = 1s}, end);
  EXPECT_EQ(schedule.next(0s), 1s);
  end.end_at(900ms);
  EXPECT_EQ(schedule.next(0s), std::nullopt);
  end.end_at(60s);
  EXPECT_EQ(schedule.next(9s), 9s) << "the plan is the latest end";
  EXPECT_EQ(schedule.next(10s), std::nullopt);
}

}  // namespace
}  // namespace vpfs::load
