#include "control/insight/lag_watch.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::insight {
namespace {

using stage::HistoryReading;
using std::chrono::microseconds;
using std::chrono::seconds;

constexpr Cost kRequest = 1000;
constexpr std::uint64_t kDepth = 4;

class LagWatchTest : public ::testing::Test {
 protected:
  struct Flow {
    HistoryReading reading;
    bool is_backlogged = true;
    Duration queued_for = {};  // the oldest request
  };
  Flow& add(const std::string& name, const Share& share = {}) {
    auto flow = std::make_unique<Flow>();
    flow->reading.id = {.app = AppId{static_cast<std::uint32_t>(flows_.size())}, .generation = 0};
    give(*flow, name, share);
    return *flows_.emplace_back(std::move(flow));
  }
  static void give(Flow& flow, const std::string& name, const Share& share) {
    auto declared = std::make_shared<stage::VirtualPfsConfig>();
    declared->share = share;
    auto info = std::make_shared<stage::VirtualPfsInfo>();
    info->name = name;
    info->declared = std::move(declared);
    flow.reading.info = std::move(info);
  }
  // The first two readings only tell that requests of the present shares are queued.
  void begin() {
    for (int i = 0; i < 2; ++i) (void)second(std::vector<Cost>(flows_.size(), 0));
  }
  // A second in which each flow has so much done.
  std::optional<LagWatch::Fault> second(const std::vector<Cost>& done) {
    now_ += seconds(1);
    std::vector<HistoryReading> readings;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      HistoryReading& reading = flows_[i]->reading;
      reading.at = now_ + i * apart_;
      reading.cost_done += done[i];
      reading.largest = kRequest;
      reading.oldest = flows_[i]->is_backlogged ? now_ - flows_[i]->queued_for : kNever;
      if (flows_[i]->is_backlogged) reading.held.share += seconds(1);
      readings.push_back(reading);
    }
    return watch_.judge(readings, promise_);
  }
  [[nodiscard]] std::optional<Lag> worst(const std::string& name) const {
    for (const NamedLag& each : watch_.lags()) {
      if (each.name == name) return each.lag;
    }
    return std::nullopt;
  }

  std::vector<std::unique_ptr<Flow>> flows_;
  LagWatch watch_;
  LagWatch::Promise promise_ = {.by_weight = true, .depth = kDepth};
  TimePoint now_ = TimePoint(seconds(100));
  Duration apart_ = {};  // of two rows
};

TEST_F(LagWatchTest, ServiceByWeightHasNoLag) {
  add("a", {.weight = 3});
  add("b", {.weight = 1});
  begin();
  EXPECT_FALSE(second({300'000, 100'000}));
  ASSERT_TRUE(worst("a"));
  EXPECT_EQ(worst("a")->lag, 0);
  EXPECT_EQ(watch_.faults(), 0U);
}

TEST_F(LagWatchTest, HasABoundInTheCostOfTheVirtualPfs) {
  add("a", {.weight = 3});
  add("b", {.weight = 1});
  begin();
  EXPECT_FALSE(second({303'000, 99'000}));
  // 101,000 and 99,000 by weight.
  EXPECT_EQ(worst("a")->lag, 3 * 2000);
  EXPECT_EQ(worst("b")->lag, 2000);
  const double bound = (kDepth + 1) * (kRequest / 3.0 + kRequest);
  EXPECT_DOUBLE_EQ(worst("a")->bound, 3 * bound);
  EXPECT_DOUBLE_EQ(worst("b")->bound, bound);
}

// FIFO gives each what it asks for, whatever the weights.
TEST_F(LagWatchTest, ASchedulerThatCheatsIsSeen) {
  add("a", {.weight = 3});
  add("b", {.weight = 1});
  begin();
  const auto fault = second({200'000, 200'000});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->ahead, "b");
  EXPECT_EQ(fault->behind, "a");
  EXPECT_GT(fault->lag, fault->bound);
  EXPECT_EQ(watch_.faults(), 1U);
}

TEST_F(LagWatchTest, TheWorstOfManyIsFound) {
  for (int i = 0; i < 50; ++i) add("f" + std::to_string(i));
  begin();
  std::vector<Cost> done(50, 100'000);
  done[17] = 60'000;
  const auto fault = second(done);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->behind, "f17");
  EXPECT_EQ(worst("f17")->lag, 40'000);
  EXPECT_EQ(worst("f3")->lag, 40'000) << "to the furthest other one";
}

TEST_F(LagWatchTest, OneWithoutAQueueForAMomentIsNotCompared) {
  add("a");
  Flow& b = add("b");
  begin();
  b.is_backlogged = false;
  EXPECT_FALSE(second({300'000, 1000}));
  EXPECT_FALSE(worst("b"));
  b.is_backlogged = true;
  EXPECT_TRUE(second({300'000, 1000}));
}

TEST_F(LagWatchTest, LimitsMinimumsAndNewSharesAreLeftOut) {
  add("a");
  add("b", {.rate = {5000}});
  add("c", {.min = {5000}});
  Flow& d = add("d");
  Flow& e = add("e");
  begin();
  give(d, "d", {.weight = 9});
  e.reading.held.limit += microseconds(1);  // a coordinator's
  EXPECT_FALSE(second({300'000, 1000, 900'000, 1000, 1000}));
  EXPECT_EQ(watch_.faults(), 0U);
}

TEST_F(LagWatchTest, RequestsFromBeforeAChangeOfTheShareAreNotJudged) {
  Flow& a = add("a");
  add("b");
  begin();
  EXPECT_TRUE(second({300'000, 1000}));
  a.queued_for = seconds(2);
  give(a, "a", {.weight = 2});
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(second({300'000, 1000})) << i;
  a.queued_for = {};
  EXPECT_TRUE(second({300'000, 1000}));
}

TEST_F(LagWatchTest, ANewSchedulerBeginsAnew) {
  add("a");
  add("b");
  begin();
  ++promise_.scheduler;
  EXPECT_FALSE(second({300'000, 1000}));
  EXPECT_TRUE(second({300'000, 1000}));
}

TEST_F(LagWatchTest, OneThatPassedEarlyIsLeftOutUntilItHasNoQueue) {
  Flow& a = add("a");
  add("b");
  begin();
  ++a.reading.unscheduled;
  EXPECT_FALSE(second({100'000, 200'000}));
  EXPECT_FALSE(second({100'000, 200'000})) << "it still pays";
  a.is_backlogged = false;
  EXPECT_FALSE(second({0, 200'000}));
  a.is_backlogged = true;
  EXPECT_TRUE(second({100'000, 200'000}));
}

TEST_F(LagWatchTest, ANumberThatIsUsedAgainIsAnotherOne) {
  Flow& a = add("a");
  add("b");
  begin();
  a.reading.id.generation = 1;
  a.reading.cost_done = 0;
  give(a, "other", {});
  EXPECT_FALSE(second({1000, 200'000}));
  EXPECT_FALSE(second({200'000, 200'000}));
}

TEST_F(LagWatchTest, RowsThatAreReadLaterHaveMore) {
  for (int i = 0; i < 3; ++i) add("f" + std::to_string(i));
  apart_ = std::chrono::milliseconds(20);
  begin();
  EXPECT_FALSE(second({1'000'000, 1'020'000, 1'040'000}));
  EXPECT_TRUE(second({1'000'000, 1'020'000, 1'800'000}));
}

TEST_F(LagWatchTest, NothingIsJudgedWithoutAPromise) {
  add("a");
  add("b");
  promise_.by_weight = false;
  begin();
  EXPECT_FALSE(second({300'000, 1000}));
  EXPECT_FALSE(worst("a"));
}

TEST_F(LagWatchTest, AnticipationMayBeBehindByItsClaims) {
  add("a");
  add("b");
  promise_.anticipates = true;
  begin();
  const Cost bound = 2 * (2 * kDepth + 1) * kRequest + 16 * kRequest;
  EXPECT_FALSE(second({bound, 0}));
  EXPECT_TRUE(second({bound + 1, 0}));
}

}  // namespace
}  // namespace vpfs::insight
