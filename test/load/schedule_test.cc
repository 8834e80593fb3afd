#include "load/schedule.h"

#include <gtest/gtest.h>

namespace vpfs::load {
namespace {

using namespace std::chrono_literals;

TEST(Schedule, WithoutTimesIsActiveUntilTheEndOfTheRun) {
  const Schedule schedule({}, 10s);
  EXPECT_EQ(schedule.next(0s), 0s);
  EXPECT_EQ(schedule.next(9999ms), 9999ms);
  EXPECT_EQ(schedule.next(10s), std::nullopt);
}

TEST(Schedule, WaitsForTheStartAndEndsAtTheStop) {
  const Schedule schedule({.start = 2s, .stop = 5s}, 10s);
  EXPECT_EQ(schedule.next(0s), 2s);
  EXPECT_EQ(schedule.next(3s), 3s);
  EXPECT_EQ(schedule.next(5s), std::nullopt);
}

TEST(Schedule, IsActiveOnlyInItsBursts) {
  const Schedule schedule({.start = 1s, .burst = Burst{.length = 200ms, .interval = 1s}}, 10s);
  EXPECT_EQ(schedule.next(0s), 1s);
  EXPECT_EQ(schedule.next(1100ms), 1100ms);
  EXPECT_EQ(schedule.next(1200ms), 2s);
  EXPECT_EQ(schedule.next(1999ms), 2s);
  EXPECT_EQ(schedule.next(9200ms), std::nullopt);
}

}  // namespace
}  // namespace vpfs::load
