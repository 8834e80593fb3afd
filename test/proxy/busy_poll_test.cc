#include "proxy/busy_poll.h"

#include <gtest/gtest.h>

#include "test/support/start_time.h"

namespace vpfs::proxy {
namespace {

using namespace std::chrono_literals;
using test::kStart;

BusyPoll of_50_us() {
  BusyPoll poll;
  poll.set_longest(50us);
  return poll;
}

// The first `sleeps` sleeps after `now`: before how many of them it asks, in vain.
int tries(BusyPoll& poll, int sleeps, TimePoint now) {
  int count = 0;
  for (int i = 0; i < sleeps; ++i) {
    if (poll.next(now) == Duration::zero()) continue;
    ++count;
    poll.missed(1us, now);
  }
  return count;
}

TEST(BusyPoll, IsOffUnlessALongestTimeIsSet) {
  BusyPoll poll;
  EXPECT_EQ(poll.next(kStart), Duration::zero());
  poll.set_longest(50us);
  EXPECT_EQ(poll.next(kStart), 50us);
  poll.set_longest(Duration::zero());
  EXPECT_EQ(poll.next(kStart), Duration::zero());
}

TEST(BusyPoll, AThreadWithoutTrafficOnlyTriesNowAndThen) {
  BusyPoll poll = of_50_us();
  EXPECT_EQ(tries(poll, BusyPoll::kInVain, kStart), BusyPoll::kInVain);
  EXPECT_EQ(tries(poll, 10 * BusyPoll::kTries, kStart), 10);
}

TEST(BusyPoll, ATryThatFindsSomethingMakesItAskAgain) {
  BusyPoll poll = of_50_us();
  (void)tries(poll, BusyPoll::kInVain, kStart);
  int sleeps = 1;
  while (poll.next(kStart) == Duration::zero()) ++sleeps;
  EXPECT_EQ(sleeps, BusyPoll::kTries);
  poll.found();
  EXPECT_EQ(tries(poll, BusyPoll::kInVain, kStart), BusyPoll::kInVain);
}

TEST(BusyPoll, TimesInVainCountOnlyIfNothingWasFoundBetweenThem) {
  BusyPoll poll = of_50_us();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(tries(poll, BusyPoll::kInVain - 1, kStart), BusyPoll::kInVain - 1);
    EXPECT_EQ(poll.next(kStart), 50us);
    poll.found();
  }
}

TEST(BusyPoll, WhileOthersWantTheProcessorItDoesNotAsk) {
  BusyPoll poll = of_50_us();
  poll.missed(BusyPoll::kPreempted - 1ns, kStart);
  EXPECT_EQ(poll.next(kStart), 50us);
  poll.missed(BusyPoll::kPreempted, kStart);
  EXPECT_EQ(poll.next(kStart), Duration::zero());
  EXPECT_EQ(poll.next(kStart + BusyPoll::kRest - 1ns), Duration::zero());
  EXPECT_EQ(poll.next(kStart + BusyPoll::kRest), 50us);
}

TEST(BusyPoll, RestsLongerEachTimeThatTheyAreStillThere) {
  BusyPoll poll = of_50_us();
  TimePoint now = kStart;
  for (Duration rest = BusyPoll::kRest; rest < BusyPoll::kLongestRest; rest *= 2) {
    poll.found();  // what came at once says nothing about others
    poll.missed(1ms, now);
    EXPECT_EQ(poll.next(now + rest - 1ns), Duration::zero());
    now += rest;
    EXPECT_EQ(poll.next(now), 50us);
  }
  for (int i = 0; i < 3; ++i) {
    poll.found();
    poll.missed(1ms, now);
    now += BusyPoll::kLongestRest;
    EXPECT_EQ(poll.next(now), 50us);
  }
  poll.missed(1us, now);
  poll.missed(1ms, now);
  EXPECT_EQ(poll.next(now + BusyPoll::kRest), 50us) << "they were gone in between";
}

}  // namespace
}  // namespace vpfs::proxy
