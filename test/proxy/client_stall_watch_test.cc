#include "proxy/client_stall_watch.h"

#include <vector>

#include <gtest/gtest.h>

#include "test/proxy/sweep_times.h"

namespace vpfs::proxy {
namespace {

using namespace std::chrono_literals;
using Verdict = ClientStallWatch::Verdict;
using Standing = StallBudgets::Standing;

constexpr ClientStallWatch::Limits kLimits = {.least_rate = {1'000'000}, .client_stall = 2s};

class ClientStallWatchTest : public ::testing::Test {
 protected:
  ClientStallWatchTest() { io_.app = AppId{1}; }

  Verdict look() {
    now_ += kTick;
    return watch_.look(state_, kLimits, now_);
  }
  // Looks until the verdict is another; how long that took.
  Duration time_until_it_stalls() {
    const TimePoint begin = now_;
    while (now_ < begin + 1min) {
      if (look() == Verdict::begins_to_stall) break;
    }
    return now_ - begin;
  }
  // The data server waits for file data of one request.
  void owe_data() {
    state_.owes_data = true;
    state_.others_wait = true;
    state_.waiting = waiting_;
  }

  TimePoint now_ = TimePoint{} + 1h;
  StallBudgets budgets_;
  ClientStallWatch watch_{budgets_, asio::ip::make_address("10.0.0.1")};
  PendingIo io_;
  std::vector<PendingIo*> waiting_ = {&io_};
  ClientStallWatch::State state_;
};

TEST_F(ClientStallWatchTest, AClientThatIsNotWaitedForNeverStalls) {
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(look(), Verdict::moves);
  EXPECT_FALSE(watch_.stalled());
  EXPECT_TRUE(budgets_.nobody_stalled());
}

// Its slots hold up no other request.
TEST_F(ClientStallWatchTest, OneWhoseSlotsNoOtherWaitsForNeverStallsHoweverSlowItIs) {
  owe_data();
  state_.others_wait = false;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(look(), Verdict::moves);
  EXPECT_TRUE(budgets_.nobody_stalled());
}

TEST_F(ClientStallWatchTest, OnlyTimeInWhichOthersWaitIsCharged) {
  owe_data();
  state_.others_wait = false;
  for (int i = 0; i < 200; ++i) EXPECT_EQ(look(), Verdict::moves);
  state_.others_wait = true;
  const Duration after = time_until_it_stalls();
  EXPECT_GE(after, kLimits.client_stall / 3 - kTick) << "what was before it does not count";
  EXPECT_LE(after, kLimits.client_stall / 3 + 2 * kTick);
}

TEST_F(ClientStallWatchTest, WhatASlotlessRequestKeepsTheServerWaitingIsOwedAndStopsNothing) {
  owe_data();
  (void)time_until_it_stalls();
  state_.waiting = {};
  state_.late = waiting_;
  int begun = 0;
  for (int i = 0; i < 200; ++i) {
    state_.sent += 10'000;  // a fifth of the least rate
    begun += look() == Verdict::begins_to_stall ? 1 : 0;
  }
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(watch_.standing(io_.virtual_pfs(), kLimits.client_stall, now_), Standing::slow);
}

TEST_F(ClientStallWatchTest, OneThatSendsAtTheLeastRateDoesNotStall) {
  owe_data();
  for (int i = 0; i < 1000; ++i) {
    state_.sent += 50'000;
    EXPECT_EQ(look(), Verdict::moves);
  }
}

TEST_F(ClientStallWatchTest, OneThatSendsNothingStallsOnceAndIsOnProbationAfterIt) {
  owe_data();
  const Duration after = time_until_it_stalls();
  EXPECT_GT(after, StallBudgets::grace(kLimits.client_stall));
  EXPECT_LE(after, kLimits.client_stall / 2);
  EXPECT_TRUE(watch_.stalled());
  EXPECT_TRUE(watch_.on_probation());
  EXPECT_EQ(look(), Verdict::stalls);
  while (now_ < TimePoint{} + 1h + 3s && !watch_.hardly_moves()) (void)look();
  EXPECT_TRUE(watch_.hardly_moves());

  // It sends again.
  state_.sent += 1'000'000;
  EXPECT_EQ(look(), Verdict::stalls) << "what waits in this look gives its slot up";
  EXPECT_FALSE(watch_.stalled());
  EXPECT_TRUE(watch_.on_probation());
  state_ = {};
  now_ += 1min;
  EXPECT_EQ(look(), Verdict::moves);
  EXPECT_FALSE(watch_.on_probation());
}

TEST_F(ClientStallWatchTest, AConnectionThatTakesThePlaceOfOneOnProbationIsOnProbation) {
  const auto meets_on_probation = [&](const char* address, unsigned app, TimePoint begun) {
    ClientStallWatch other(budgets_, asio::ip::make_address(address));
    other.begin(begun);
    PendingIo first;
    first.app = AppId{app};
    (void)other.meet(first.virtual_pfs(), kLimits.client_stall, now_);
    return other.on_probation();
  };
  const auto is_new_on_probation = [&] { return meets_on_probation("10.0.0.1", 1, now_); };
  watch_.end(now_);
  EXPECT_FALSE(is_new_on_probation()) << "it had not stalled";
  owe_data();
  (void)time_until_it_stalls();
  EXPECT_FALSE(is_new_on_probation()) << "none has ended";
  watch_.end(now_);
  EXPECT_FALSE(meets_on_probation("10.0.0.2", 1, now_));
  EXPECT_FALSE(meets_on_probation("10.0.0.1", 2, now_));
  EXPECT_FALSE(meets_on_probation("10.0.0.1", 1, now_ - 1ms)) << "it was there before";
  EXPECT_FALSE(meets_on_probation("10.0.0.1", 1, {})) << "another process had it";
  EXPECT_TRUE(is_new_on_probation());
  EXPECT_FALSE(is_new_on_probation()) << "it has been replaced";

  watch_.end(now_);
  watch_.end(now_);
  ClientStallWatch next(budgets_, asio::ip::make_address("10.0.0.1"));
  next.begin(now_);
  const auto meet = [&](stage::VirtualPfsId whose) {
    return next.meet(whose, kLimits.client_stall, now_);
  };
  EXPECT_EQ(meet(io_.virtual_pfs()), Standing::slow);
  EXPECT_TRUE(next.on_probation());
  EXPECT_EQ(meet({}), Standing::good) << "that of another application";
  state_ = {};
  for (int i = 0; i < 1000 && next.on_probation(); ++i) {
    now_ += kTick;
    (void)next.look(state_, kLimits, now_);
  }
  EXPECT_FALSE(next.on_probation()) << "the budget is good again";
  EXPECT_EQ(meet(io_.virtual_pfs()), Standing::good);
  EXPECT_FALSE(is_new_on_probation()) << "the other one is forgotten by now";
}

// Its link may just have paused.
TEST_F(ClientStallWatchTest, AReplacementIsHopelessOnlyIfOthersWaitOrAfterAWholeStall) {
  owe_data();
  (void)time_until_it_stalls();
  for (int i = 0; i < 30; ++i) (void)look();
  EXPECT_TRUE(watch_.is_hopeless(false, kLimits.client_stall)) << "it has stalled itself";
  watch_.end(now_);
  ClientStallWatch next(budgets_, asio::ip::make_address("10.0.0.1"));
  next.begin(now_);
  ASSERT_EQ(next.meet(io_.virtual_pfs(), kLimits.client_stall, now_), Standing::slow);
  state_.waiting = {};
  state_.late = waiting_;
  state_.others_wait = false;
  const TimePoint begin = now_;
  while (!next.is_hopeless(false, kLimits.client_stall) && now_ < begin + 1min) {
    now_ += kTick;
    (void)next.look(state_, kLimits, now_);
    if (now_ - begin > 1200ms) EXPECT_TRUE(next.is_hopeless(true, kLimits.client_stall));
  }
  EXPECT_GE(now_ - begin, kLimits.client_stall);
  EXPECT_LE(now_ - begin, kLimits.client_stall + 2 * kTick + 1s);
}

TEST_F(ClientStallWatchTest, AStallEndsWhenNothingIsOwedAnyMore) {
  owe_data();
  (void)time_until_it_stalls();
  state_.waiting = {};
  state_.owes_data = false;
  state_.owes_late_data = true;
  (void)look();
  EXPECT_TRUE(watch_.stalled()) << "its late data are still to come";
  state_.owes_late_data = false;
  (void)look();
  EXPECT_FALSE(watch_.stalled());
}

TEST_F(ClientStallWatchTest, OneThatTakesNothingStallsUntilItTakesSomething) {
  state_.takes_nothing = true;
  state_.others_wait = true;
  state_.waiting = waiting_;
  (void)time_until_it_stalls();
  EXPECT_EQ(look(), Verdict::stalls);
  EXPECT_TRUE(watch_.moves_again());
  EXPECT_FALSE(watch_.moves_again());
  EXPECT_FALSE(watch_.stalled());
}

// Held requests alone take no slot, so there is no budget to take from.
TEST_F(ClientStallWatchTest, WithoutSlotsItMayPauseForTheWholeTime) {
  state_.takes_nothing = true;
  EXPECT_GE(time_until_it_stalls(), 1min) << "nothing of it is held";
  EXPECT_FALSE(watch_.stalled());

  ClientStallWatch other(budgets_, asio::ip::make_address("10.0.0.2"));
  state_.has_held = true;
  Duration after = {};
  while (other.look(state_, kLimits, now_) == Verdict::moves && after < 1min) {
    now_ += kTick;
    after += kTick;
  }
  EXPECT_GE(after, kLimits.client_stall);
  EXPECT_LE(after, kLimits.client_stall + 2 * kTick);
}

TEST_F(ClientStallWatchTest, TheApplicationsOfOtherRequestsKeepTheirBudgets) {
  owe_data();
  (void)time_until_it_stalls();
  EXPECT_NE(watch_.standing(io_.virtual_pfs(), kLimits.client_stall, now_), Standing::good);
  EXPECT_EQ(watch_.standing({.app = AppId{2}}, kLimits.client_stall, now_), Standing::good);
}

TEST_F(ClientStallWatchTest, OneStallInAMinuteIsNews) {
  EXPECT_TRUE(watch_.is_news(now_));
  EXPECT_FALSE(watch_.is_news(now_ + 59s));
  EXPECT_TRUE(watch_.is_news(now_ + 60s));
}

}  // namespace
}  // namespace vpfs::proxy
