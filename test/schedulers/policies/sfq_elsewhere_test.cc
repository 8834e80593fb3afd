// Service elsewhere [DSFQ]: what a flow owes for it, and what is left of the claim of a flow that
// is awaited.
#include <cmath>
#include <deque>
#include <iostream>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/policies/registry.h"
#include "test/schedulers/capacities.h"
#include "test/support/simulation/flow_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kServerDepth = 4;
constexpr std::uint64_t kRequestSize = 64 * kKiB;

class SfqElsewhereTest : public ::testing::Test {
 protected:
  void make(SchedulerSettings settings) { scheduler_ = make_scheduler("sfq", settings).value(); }
  void share(std::uint32_t flow, std::uint32_t weight) { share(flow, Share{.weight = weight}); }
  void share(std::uint32_t flow, const Share& share) {
    ASSERT_TRUE(scheduler_->set_share(AppId{flow}, share, now_).has_value());
  }
  void add(std::uint32_t flow, int count, std::uint8_t of_class = 0, Cost cost = kMiB) {
    for (int i = 0; i < count; ++i) {
      IoRequest& request = requests_.emplace_back();
      request = {.app = AppId{flow},
                 .traffic_class = of_class,
                 .size = {cost},
                 .cost = cost,
                 .arrival = now_};
      scheduler_->enqueue(request, now_);
    }
  }
  // Flows 0 and 1, of the same weight, with so many requests.
  void two_equals(int first, int second) {
    share(0, 1);
    share(1, 1);
    add(0, first);
    add(1, second);
  }
  void elsewhere(std::uint32_t flow, Cost cost, Duration delay = 1s) {
    scheduler_->served_elsewhere(AppId{flow}, cost, delay, now_);
  }
  // How many of `count` requests were of flow 0.
  int serve(int count) {
    int first = 0;
    for (int i = 0; i < count; ++i) {
      IoRequest* const request = scheduler_->next(now_).request;
      if (request == nullptr) break;
      if (request->app == AppId{0}) ++first;
      scheduler_->complete(*request, request->cost, now_);
    }
    return first;
  }

  std::unique_ptr<Scheduler> scheduler_ = make_scheduler("sfq", {}).value();
  std::deque<IoRequest> requests_;
  TimePoint now_ = {};
};

TEST_F(SfqElsewhereTest, ServiceElsewhereCountsLikeServiceHere) {
  two_equals(100, 100);
  EXPECT_EQ(serve(20), 10);
  elsewhere(0, 10 * kMiB);
  EXPECT_LE(serve(10), 1);
  EXPECT_NEAR(serve(20), 10, 1);
}

TEST_F(SfqElsewhereTest, AFlowThatGotMoreElsewhereWhileItHadNothingHereWaitsWhenItComes) {
  share(0, 1);
  share(1, 1);
  add(1, 100);
  elsewhere(0, 20 * kMiB);
  EXPECT_EQ(serve(10), 0);
  add(0, 100);
  EXPECT_LE(serve(10), 1);
  EXPECT_NEAR(serve(20), 10, 1);
}

TEST_F(SfqElsewhereTest, ANewFlowOfAnOldAppIdOwesNothing) {
  share(0, 1);
  share(1, 1);
  add(1, 100);
  elsewhere(0, kGiB);
  scheduler_->remove(AppId{0}, {});
  share(0, 1);
  add(0, 100);
  EXPECT_NEAR(serve(20), 10, 1);
}

TEST_F(SfqElsewhereTest, AFlowThatIsRemovedWhileItWaitsOwesNothingEither) {
  share(0, 1);
  share(1, 1);
  add(1, 100);
  add(0, 100);
  elsewhere(0, kGiB);
  scheduler_->remove(AppId{0}, {});
  EXPECT_NEAR(serve(20), 10, 1);
  now_ += 1s;
  EXPECT_NEAR(serve(20), 10, 1);
}

// Several calls of 20 GiB, as a fast cluster makes one each second.
TEST_F(SfqElsewhereTest, WhatIsOwedAtAHighRateIsWorkedOff) {
  share(0, 1);
  share(1, 1);
  add(0, 100, 0, kGiB / 4);
  add(1, 400, 0, kGiB / 4);
  EXPECT_EQ(serve(20), 10);
  elsewhere(0, 20 * kGiB);
  elsewhere(0, 20 * kGiB);
  EXPECT_LE(serve(159), 1);
  EXPECT_NEAR(serve(40), 20, 2);
}

// Its other servers give it more than the others could ever get here. When they are gone it is not
// made to pay for all that.
TEST_F(SfqElsewhereTest, AFlowThatAlwaysGetsMoreElsewhereOwesOnlyTheLastReports) {
  two_equals(100, 1000);
  for (int i = 0; i < 100; ++i) {
    elsewhere(0, 10 * kMiB);
    EXPECT_LE(serve(5), i == 0 ? 1 : 0);
  }
  // Four reports of 10 MiB less the 5 MiB that flow 1 had since the last one.
  EXPECT_LE(serve(36), 1);
  EXPECT_NEAR(serve(20), 10, 2);
}

TEST_F(SfqElsewhereTest, SmallerReportsLeaveASmallerDebt) {
  two_equals(100, 1000);
  elsewhere(0, 100 * kMiB);
  for (int i = 0; i < 60; ++i) {
    elsewhere(0, 4 * kMiB);
    EXPECT_LE(serve(3), i == 0 ? 1 : 0);
  }
  // Four reports of 4 MiB less the 3 MiB that flow 1 had since the last one.
  EXPECT_LE(serve(12), 1);
  EXPECT_NEAR(serve(20), 10, 2);
}

TEST_F(SfqElsewhereTest, ADebtThatIsForgottenHoldsNoFlow) {
  for (const std::uint32_t flow : {0U, 1U, 2U}) share(flow, 1);
  add(0, 100);
  add(1, 100);
  elsewhere(0, 50 * kGiB);
  elsewhere(2, 50 * kGiB);  // has nothing queued
  EXPECT_LE(serve(10), 1);
  scheduler_->forget_elsewhere(now_);
  EXPECT_NEAR(serve(20), 10, 1);
  add(2, 100);
  EXPECT_NEAR(serve(30), 10, 2);
}

TEST_F(SfqElsewhereTest, NoRequestIsHeldByADebtForHalfOfTheTimeAfterWhichItFails) {
  scheduler_->set_hold(2s, now_);
  two_equals(100, 400);
  elsewhere(0, 50 * kGiB, 1h);
  EXPECT_LE(serve(10), 1);
  now_ += 999ms;
  EXPECT_EQ(serve(10), 0);
  now_ += 1ms;
  EXPECT_NEAR(serve(20), 10, 1) << "all that came at that time";
}

TEST_F(SfqElsewhereTest, ALateRequestThatHasWaitedForThatLongLetsTheHeadPass) {
  now_ += 10s;
  scheduler_->set_hold(2s, now_);
  two_equals(1, 400);
  elsewhere(0, 50 * kGiB, 1h);
  EXPECT_LE(serve(10), 1);
  add(0, 1);
  EXPECT_EQ(serve(10), 0);
  IoRequest& late = requests_.emplace_back();
  late = {.app = AppId{0}, .size = {kMiB}, .cost = kMiB, .arrival = now_ - 1s};
  scheduler_->enqueue(late, now_);
  EXPECT_GE(serve(4), 1);
}

TEST_F(SfqElsewhereTest, WithWeightTheSameServiceIsASmallerDebt) {
  share(0, 4);
  share(1, 1);
  add(0, 400);
  add(1, 400);
  elsewhere(0, 40 * kMiB);
  EXPECT_LE(serve(9), 1);
  EXPECT_NEAR(serve(50), 40, 4);
}

TEST_F(SfqElsewhereTest, WithClassesAFlowLosesOnce) {
  for (const auto& [first, second] : {std::pair{40, 40}, std::pair{80, 0}}) {
    make({.classes = {.mode = TrafficClasses::Mode::apportion,
                      .classes = {{.name = "a", .share = 1}, {.name = "b", .share = 1}}}});
    for (const std::uint32_t flow : {0U, 1U}) share(flow, 1);
    add(0, first, 0);
    add(0, second, 1);
    add(1, 80, 0);
    add(1, 80, 1);
    elsewhere(0, 20 * kMiB + 1);
    // With both classes it gets half of the rest of 100 + 20, and with one half of the rest of 50 +
    // 20.
    EXPECT_NEAR(serve(100), second > 0 ? 40 : 15, 1) << second;
  }
}

TEST_F(SfqElsewhereTest, WithoutAnyRequestTheClassThatWasUsedLastCounts) {
  make({.classes = {.mode = TrafficClasses::Mode::apportion,
                    .classes = {{.name = "a", .share = 1}, {.name = "b", .share = 1}}}});
  for (const std::uint32_t flow : {0U, 1U}) share(flow, 1);
  add(0, 1, 1);
  EXPECT_EQ(serve(1), 1);
  add(1, 80, 0);
  add(1, 80, 1);
  EXPECT_EQ(serve(2), 0);
  elsewhere(0, 20 * kMiB);
  add(0, 80, 0);
  add(0, 80, 1);
  EXPECT_NEAR(serve(100), 40, 2);
}

TEST_F(SfqElsewhereTest, TheLimitComesFirst) {
  share(0, Share{.rate = {kMiB}, .burst = {kMiB}});
  share(1, 1);
  add(1, 100);
  add(0, 3);
  EXPECT_EQ(serve(4), 1);
  elsewhere(0, 50 * kGiB, 100ms);  // the next one may go in a second by its limit
  now_ += 900ms;
  EXPECT_EQ(serve(10), 0);
  now_ += 100ms;
  EXPECT_EQ(serve(10), 1);
}

TEST_F(SfqElsewhereTest, AMinimumIsKeptBesideADebt) {
  share(0, Share{.min = {10 * kMiB}});
  share(1, 1);
  add(0, 100);
  add(1, 400);
  elsewhere(0, 50 * kGiB, 10s);
  int first = 0;
  for (int i = 0; i < 40; ++i, now_ += 100ms) first += serve(5);
  EXPECT_NEAR(first, 40, 1);
  share(0, 1);  // the minimum goes, the debt stays
  EXPECT_EQ(serve(50), 0);
}

TEST_F(SfqElsewhereTest, WhatARequestDidBeyondItsChargeCountsAtOnce) {
  two_equals(100, 100);
  IoRequest* const request = scheduler_->next(now_).request;
  ASSERT_EQ(request->app, AppId{0});
  scheduler_->charge_more(*request, {.cost = 10 * kMiB}, now_);
  scheduler_->complete(*request, kMiB, now_);
  EXPECT_EQ(serve(11), 0);
  EXPECT_NEAR(serve(20), 10, 1);
}

// Service of a head that was held for too long is owed as well.
TEST_F(SfqElsewhereTest, ServiceThatWasDueAfterAPeriodDoesNotCancelTheDebt) {
  two_equals(100, 400);
  elsewhere(0, 50 * kMiB, 100ms);
  int first = serve(1);  // the tags begin alike
  for (int i = 0; i < 9; ++i) {
    first += serve(4);
    now_ += 100ms;
  }
  EXPECT_NEAR(first, 9, 1);
  // Both become equal with those 50: flow 1 had 28, so it gets 31 more, and then they alternate.
  EXPECT_LE(serve(28), 1);
  EXPECT_NEAR(serve(20), 10, 4);
}

// A head waits for the period and the requests before it at the server, beside many flows of small
// and large weights, and also when the coordinator dies.
TEST(SfqElsewhere, NoHeadWaitsForLongerThanThePeriodWhateverIsOwed) {
  constexpr Duration kPeriod = 200ms;
  for (const std::uint32_t weight : {1U, 1000U}) {
    for (const bool coordinator_dies : {false, true}) {
      SCOPED_TRACE(weight);
      const auto scheduler = make_scheduler("sfq", {.depth = {.requests = kServerDepth}}).value();
      std::vector<FlowWork> works(50, {.outstanding = 4});
      works[0].share.weight = weight;
      works[0].outstanding = 1;
      FlowSimulation simulation(*scheduler, {.cost_per_second = kServerSpeed}, works, 1);
      const TimePoint begin = TimePoint{} + 10ms;
      Duration most = {};
      simulation.on_sent = [&](const IoRequest& request) {
        if (request.app != AppId{0} || simulation.now() <= begin) return;
        most = std::max(most, simulation.now() - std::max(request.arrival, begin));
      };
      simulation.run_until(begin);
      for (int period = 0; period < 20; ++period) {
        if (!coordinator_dies || period < 3) {
          scheduler->served_elsewhere(AppId{0}, 500 * kGiB, kPeriod, simulation.now());
        }
        simulation.run(kPeriod);
      }
      const Duration request =
          std::chrono::nanoseconds(1'000'000'000 * kRequestSize / kServerSpeed);
      EXPECT_LE(most, kPeriod + kServerDepth * request + 1us);
      EXPECT_GE(most, kPeriod - request) << "it should be held back, though";
      EXPECT_GE(simulation.count(0), 18U);
    }
  }
}

// Repeated reports, small ones or with a short period, give no flow more than its weight does.
TEST_F(SfqElsewhereTest, ADebtNeverGivesAFlowMoreThanItsWeight) {
  using namespace std::chrono_literals;
  for (const Duration period : {Duration(0ns), Duration(500us), Duration(10ms)}) {
    SCOPED_TRACE(::testing::Message() << period.count() << " ns");
    scheduler_ = make_scheduler("sfq", {.depth = {.requests = 1}}).value();
    requests_.clear();
    share(0, 1);
    share(1, 100);
    add(0, 3000);
    add(1, 3000);
    TimePoint now{};
    int first = 0;
    for (int i = 0; i < 2000; ++i, now += 1ms) {
      if (i % 10 == 0) scheduler_->served_elsewhere(AppId{0}, 1, period, now);
      IoRequest* const request = scheduler_->next(now).request;
      ASSERT_NE(request, nullptr);
      if (request->app == AppId{0}) ++first;
      scheduler_->complete(*request, request->cost, now);
    }
    EXPECT_LE(first, 2000 / 101 + 2);
    EXPECT_GE(first, 2000 / 101 - 2) << "and little less, for a few bytes";
  }
}

// Flow 0 has a weight of 4 and one request at a time, beside flow 1 with a queue, until it is as
// far behind as it may be: 64 requests of its own.
class SfqElsewhereClaimsTest : public SfqElsewhereTest {
 protected:
  // `learns`: the next report does no more than teach how much comes from elsewhere.
  void begin(bool learns) {
    SchedulerSettings settings = {.depth = {.requests = 1}};
    settings.own.set(AnticipationSettings{.on = true, .max_loss = 0});
    make(settings);
    share(0, 4);
    share(1, 1);
    if (learns) elsewhere(0, 0);
    add(1, 300);
    IoRequest* at_server = scheduler_->next(now_).request;
    for (int i = 0; i < 100; ++i) {
      now_ += 200us;
      if (i % 2 == 0) add(0, 1);
      now_ += 800us;
      scheduler_->complete(*at_server, at_server->cost, now_);
      at_server = scheduler_->next(now_).request;
    }
    scheduler_->complete(*at_server, at_server->cost, now_);
    now_ += 200us;
  }
  // How many requests of flow 0 go before the first one of flow 1.
  int first_ones() {
    for (int count = 0;; ++count) {
      if (serve(1) == 0) return count;
    }
  }
};

TEST_F(SfqElsewhereClaimsTest, WithoutReportsTheClaimIsThere) {
  begin(false);
  add(0, 100);
  EXPECT_NEAR(first_ones(), 64, 5);
}

TEST_F(SfqElsewhereClaimsTest, AReportThatLeavesNothingOwedLeavesTheClaimOfAFlowThatIsAwaited) {
  begin(true);
  elsewhere(0, 100 * kMiB);
  add(0, 100);
  EXPECT_NEAR(first_ones(), 64, 5);
}

TEST_F(SfqElsewhereClaimsTest, AReportThatLeavesNothingOwedLeavesTheClaimOfAFlowThatIsBehind) {
  begin(true);
  add(0, 100);
  elsewhere(0, 100 * kMiB);
  EXPECT_NEAR(first_ones(), 64, 5);
}

TEST_F(SfqElsewhereClaimsTest, ServiceElsewhereIsTakenFromTheClaimFirst) {
  for (const bool is_there : {false, true}) {
    begin(false);
    if (is_there) add(0, 100);
    elsewhere(0, 40 * kMiB);
    if (!is_there) add(0, 100);
    EXPECT_NEAR(first_ones(), 24, 5) << is_there;
  }
}

TEST_F(SfqElsewhereClaimsTest, AFlowThatCameBackTooLateHasNoClaimAndOwesWhatItGotElsewhere) {
  begin(false);
  now_ += 10s;
  elsewhere(0, 40 * kMiB);
  add(0, 100);
  EXPECT_EQ(first_ones(), 0);
  EXPECT_EQ(serve(8), 0);
}

TEST_F(SfqElsewhereClaimsTest, WeightsThatChangeLeaveTheClaim) {
  begin(false);
  add(0, 100);
  share(0, 2);
  share(0, 4);
  EXPECT_NEAR(first_ones(), 64, 5);
}

}  // namespace
}  // namespace vpfs
