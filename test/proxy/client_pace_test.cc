#include "proxy/client_pace.h"

#include <vector>

#include <gtest/gtest.h>

#include "test/proxy/sweep_times.h"

namespace vpfs::proxy {
namespace {

using namespace std::chrono_literals;

constexpr BytesPerSecond kLeast = {1'000'000};
const asio::ip::address kNode = asio::ip::make_address("10.0.0.1");
constexpr stage::VirtualPfsId kApp{.app = AppId{1}};
using Standing = StallBudgets::Standing;

TEST(ClientPace, LagIsTheTimeThatNothingCame) {
  ClientPace pace;
  TimePoint now = TimePoint{} + 1h;
  (void)pace.look(now, true, 0, kLeast);
  for (int i = 1; i <= 10; ++i) EXPECT_EQ(pace.look(now + i * kTick, true, 0, kLeast), i * kTick);
}

TEST(ClientPace, AClientThatKeepsTheRateDoesNotLagAndOneByteNowAndThenDoes) {
  ClientPace steady;
  ClientPace drip;
  TimePoint now = TimePoint{} + 1h;
  (void)steady.look(now, true, 0, kLeast);
  (void)drip.look(now, true, 0, kLeast);
  std::uint64_t sent = 0;
  Duration lag = {};
  for (int i = 0; i < 200; ++i) {
    now += kTick;
    if (i % 5 == 4) sent += 250'000;  // in messages of 256 KB
    EXPECT_LE(steady.look(now, true, sent, kLeast), 250ms);
    lag = drip.look(now, true, static_cast<std::uint64_t>(i) / 20, kLeast);
  }
  EXPECT_GT(lag, 9900ms);
}

TEST(ClientPace, AFastClientHasNoCreditForAPause) {
  ClientPace pace;
  TimePoint now = TimePoint{} + 1h;
  (void)pace.look(now, true, 0, kLeast);
  (void)pace.look(now += kTick, true, 1'000'000'000, kLeast);
  EXPECT_EQ(pace.look(now += kTick, true, 1'000'000'000, kLeast), kTick);
}

TEST(ClientPace, ThereIsNoLagWhileNoRequestWaitsOrTheProxyItselfWasLate) {
  ClientPace pace;
  TimePoint now = TimePoint{} + 1h;
  (void)pace.look(now, true, 0, kLeast);
  EXPECT_EQ(pace.look(now += 10s, true, 0, kLeast), 100ms);
  EXPECT_EQ(pace.look(now += kTick, false, 0, kLeast), 0ms);
}

TEST(ClientPace, ASlowLinkMovesAndADripHardlyDoes) {
  ClientPace slow;
  ClientPace drip;
  TimePoint now = TimePoint{} + 1h;
  for (std::uint64_t i = 0; i < 40; ++i, now += kTick) {
    (void)slow.look(now, true, i * 20'000, kLeast);  // 0.4 of the rate
    (void)drip.look(now, true, i, kLeast);
  }
  EXPECT_FALSE(slow.hardly_moves());
  EXPECT_TRUE(drip.hardly_moves());
}

// One connection after the other stalls as soon as it gets slots. Sums up how long the
// application's slots wait in any minute.
TEST(StallBudgets, StallingInTurnCostsNoMoreThanTheStallInAnyMinute) {
  StallBudgets budgets;
  std::vector<TimePoint> waited;
  const TimePoint start = TimePoint{} + 1h;
  Duration lag = {};
  for (TimePoint now = start; now < start + 10min; now += kTick) {
    // Each time a new connection, in good standing. A slow application takes no slots.
    if (budgets.standing(kApp, kNode, now, kStall) == Standing::slow) {
      lag = {};
      continue;
    }
    waited.push_back(now);
    lag += kTick;
    if (lag <= StallBudgets::grace(kStall)) continue;
    if (!budgets.take(kApp, kNode, now - lag, now, kStall)) lag = {};
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < waited.size(); ++i) {
    while (waited[i] - waited[first] > 1min) ++first;
    // A stall begins as a hiccup that costs no budget.
    EXPECT_LE((i - first + 1) * kTick, kStall + StallBudgets::grace(kStall) + 2 * kTick);
  }
}

TEST(StallBudgets, AConnectionThatStalledOnceIsInGoodStandingSoon) {
  StallBudgets budgets;
  const TimePoint start = TimePoint{} + 1h;
  TimePoint now = start;
  while (budgets.take(kApp, kNode, start, now, kStall)) now += kTick;
  EXPECT_LE(now - start, kStall / 2);
  EXPECT_EQ(budgets.standing(kApp, kNode, now, kStall), Standing::stalled);
  EXPECT_EQ(budgets.standing(kApp, kNode, now + 15s, kStall), Standing::good);
}

TEST(StallBudgets, TimeThatSeveralConnectionsWaitAtOnceCountsOnce) {
  StallBudgets budgets;
  const TimePoint now = TimePoint{} + 1h;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(budgets.take(kApp, kNode, now - 300ms, now, kStall));
}

TEST(StallBudgets, OthersAndOtherNodesAreNotTouched) {
  StallBudgets budgets;
  const TimePoint now = TimePoint{} + 1h;
  for (int i = 0; i < 10; ++i) {
    (void)budgets.take(kApp, kNode, now + i * 1s, now + (i + 1) * 1s, kStall);
  }
  const TimePoint then = now + 10s;
  EXPECT_EQ(budgets.standing(kApp, kNode, then, kStall), Standing::slow);
  EXPECT_EQ(budgets.standing({.app = AppId{2}}, kNode, then, kStall), Standing::good);
  EXPECT_EQ(budgets.standing(kApp, asio::ip::make_address("10.0.0.2"), then, kStall),
            Standing::good);
}

}  // namespace
}  // namespace vpfs::proxy
