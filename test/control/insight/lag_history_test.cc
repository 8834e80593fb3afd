#include "control/insight/lag_history.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::insight {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class LagHistoryTest : public ::testing::Test {
 protected:
  void second(const std::vector<NamedLag>& lags) { history_.add(now_ += seconds(1), lags); }
  [[nodiscard]] double worst(const std::string& name, WallTime from, WallTime to) const {
    const std::optional<Lag> lag = history_.worst(name, from, to);
    return lag ? lag->lag : -1;
  }
  [[nodiscard]] double worst_in(seconds back) const { return worst("a", now_ - back, now_); }

  LagHistory history_;
  WallTime now_{hours(24 * 365)};
};

TEST_F(LagHistoryTest, TheWorstByItsBoundCounts) {
  second({{.name = "a", .lag = {.lag = 10, .bound = 100}}});
  second({{.name = "a", .lag = {.lag = 9, .bound = 20}}});
  second({{.name = "a", .lag = {.lag = 11, .bound = 100}}});
  EXPECT_EQ(worst_in(seconds(60)), 9);
  EXPECT_EQ(worst("b", now_ - hours(1), now_), -1);
}

TEST_F(LagHistoryTest, AnotherTimeHasAnotherWorst) {
  second({{.name = "a", .lag = {.lag = 50, .bound = 100}}});
  now_ += hours(2);
  for (int i = 0; i < 60; ++i) second({{.name = "a", .lag = {.lag = 1, .bound = 100}}});
  EXPECT_EQ(worst_in(seconds(30)), 1);
  EXPECT_EQ(worst_in(hours(3)), 50);
  EXPECT_EQ(worst("a", now_ - hours(3), now_ - hours(1)), 50);
  EXPECT_EQ(worst("a", now_ - minutes(90), now_ - hours(1)), -1);
  now_ += hours(23);
  second({});
  EXPECT_EQ(worst_in(hours(48)), 1);
}

TEST_F(LagHistoryTest, SeveralNamesAreKeptApartAndNotTooMany) {
  std::vector<NamedLag> lags;
  for (int i = 0; i < 1000; ++i) {
    lags.push_back({.name = std::to_string(i), .lag = {.lag = 1.0 * i, .bound = 1}});
  }
  second(lags);
  EXPECT_EQ(worst("999", now_ - seconds(1), now_), 999);
  EXPECT_EQ(worst("744", now_ - seconds(1), now_), 744);
  EXPECT_EQ(worst("743", now_ - seconds(1), now_), -1);
}

TEST_F(LagHistoryTest, TheTimeOfDayMayBeSetBack) {
  second({{.name = "a", .lag = {.lag = 5, .bound = 10}}});
  now_ -= hours(3);
  second({{.name = "a", .lag = {.lag = 1, .bound = 10}}});
  EXPECT_EQ(worst_in(seconds(60)), 1);
  now_ += hours(3);
  EXPECT_EQ(worst_in(hours(4)), 5);
}

TEST_F(LagHistoryTest, WhatAClockThatWasAheadHasLeftDoesNotGrow) {
  second({{.name = "a", .lag = {.lag = 5, .bound = 10}}});
  now_ += hours(24 * 365);
  second({{.name = "a", .lag = {.lag = 7, .bound = 10}}});
  const WallTime ahead = now_;
  now_ -= hours(24 * 365) - hours(1);
  second({{.name = "a", .lag = {.lag = 1, .bound = 10}}});
  EXPECT_EQ(worst("a", ahead - hours(1), ahead), -1);
  EXPECT_EQ(worst_in(hours(2)), 1);
}

}  // namespace
}  // namespace vpfs::insight
