#include "net/polling/busy_poll.h"

#include <gtest/gtest.h>

#include "test/support/start_time.h"

namespace vpfs::net {
namespace {

using namespace std::chrono_literals;
using test::kStart;

constexpr Duration kLongest = 50us;
constexpr BusyPoll::Polled kVain = {.time = kLongest, .longest_gap = 1us};

BusyPoll make_poll() {
  BusyPoll poll;
  poll.set_longest(kLongest);
  return poll;
}

// Before how many of so many sleeps it polls, each time in vain.
int polls_in_vain(BusyPoll& poll, int sleeps, TimePoint now = kStart) {
  int count = 0;
  for (int i = 0; i < sleeps; ++i) {
    if (poll.next(now) == Duration::zero()) continue;
    ++count;
    poll.missed(kVain, now);
  }
  return count;
}

TEST(BusyPoll, IsOffUnlessALongestTimeIsSet) {
  BusyPoll poll;
  EXPECT_EQ(poll.next(kStart), Duration::zero());
  poll.set_longest(kLongest);
  EXPECT_EQ(poll.next(kStart), kLongest);
  poll.set_longest(Duration::zero());
  EXPECT_EQ(poll.next(kStart), Duration::zero());
}

TEST(BusyPoll, WithoutTrafficItOnlyTriesNowAndThen) {
  BusyPoll poll = make_poll();
  EXPECT_EQ(polls_in_vain(poll, BusyPoll::kInVain), BusyPoll::kInVain);
  EXPECT_EQ(polls_in_vain(poll, 10 * BusyPoll::kTries), 10);
}

TEST(BusyPoll, ATryThatFindsSomethingMakesItPollAgain) {
  BusyPoll poll = make_poll();
  (void)polls_in_vain(poll, BusyPoll::kInVain);
  std::uint32_t sleeps = 1;
  while (poll.next(kStart) == Duration::zero()) ++sleeps;
  EXPECT_EQ(sleeps, BusyPoll::kTries);
  poll.found({.time = 10us, .longest_gap = 1us}, kStart);
  EXPECT_EQ(poll.next(kStart), kLongest);
}

// One request in flight: the client's next one comes at once, the data server's answer does not.
TEST(BusyPoll, BeforeASlowServerItStopsAlthoughClientsAreQuick) {
  BusyPoll poll = make_poll();
  int polls = 0;
  for (int operation = 0; operation < 1000; ++operation) {
    for (const bool server : {true, false}) {
      if (poll.next(kStart) == Duration::zero()) continue;
      ++polls;
      server ? poll.missed(kVain, kStart) : poll.found({.time = 20us, .longest_gap = 1us}, kStart);
    }
  }
  EXPECT_LT(polls, 2 * 1000 / 8);
}

TEST(BusyPoll, GoesOnWhileMostOfItsTimeEndsWithAnEvent) {
  BusyPoll poll = make_poll();
  for (int operation = 0; operation < 1000; ++operation) {
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(poll.next(kStart), kLongest);
      poll.found({.time = 20us, .longest_gap = 1us}, kStart);
    }
    ASSERT_EQ(poll.next(kStart), kLongest);
    poll.missed(kVain, kStart);
  }
}

TEST(BusyPoll, WhileOthersWantTheProcessorItDoesNotPoll) {
  BusyPoll poll = make_poll();
  poll.missed({.time = 500us, .longest_gap = BusyPoll::kPreempted - 1ns}, kStart);
  EXPECT_EQ(poll.next(kStart), kLongest);
  poll.missed({.time = 500us, .longest_gap = BusyPoll::kPreempted}, kStart);
  EXPECT_EQ(poll.next(kStart), Duration::zero());
  EXPECT_EQ(poll.next(kStart + BusyPoll::kRest - 1ns), Duration::zero());
  EXPECT_EQ(poll.next(kStart + BusyPoll::kRest), kLongest);
}

TEST(BusyPoll, RestsLongerEachTimeThatTheyAreStillThere) {
  BusyPoll poll = make_poll();
  TimePoint now = kStart;
  for (Duration rest = BusyPoll::kRest; rest < BusyPoll::kLongestRest; rest *= 2) {
    poll.found({.time = 0us, .longest_gap = 0us}, now);  // what came at once says nothing of others
    poll.found({.time = 1ms, .longest_gap = 1ms}, now);
    EXPECT_EQ(poll.next(now + rest - 1ns), Duration::zero());
    now += rest;
    EXPECT_EQ(poll.next(now), kLongest);
  }
  for (int i = 0; i < 3; ++i) {
    poll.found({.time = 1ms, .longest_gap = 1ms}, now);
    now += BusyPoll::kLongestRest;
    EXPECT_EQ(poll.next(now), kLongest);
  }
  poll.found({.time = 10us, .longest_gap = 1us}, now);
  poll.found({.time = 1ms, .longest_gap = 1ms}, now);
  EXPECT_EQ(poll.next(now + BusyPoll::kRest), kLongest) << "they were gone in between";
}

TEST(BusyPoll, OneLongGapIsNotMoreTimeInVainThanAPollMayTake) {
  BusyPoll poll = make_poll();
  poll.missed({.time = 10s, .longest_gap = 10s}, kStart);
  EXPECT_EQ(polls_in_vain(poll, BusyPoll::kInVain, kStart + 1min), BusyPoll::kInVain - 1);
}

// A clock that goes on with each look at it.
class TickingClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return now_ += 1us; }

 private:
  mutable TimePoint now_ = kStart;
};

TEST(BusyPoll, LooksUntilSomethingComesOrItsTimeIsOver) {
  BusyPoll poll = make_poll();
  const TickingClock clock;
  int looks = 0;
  EXPECT_TRUE(poll.poll(kLongest, clock, [&] { return ++looks == 10; }));
  EXPECT_EQ(looks, 10);
  looks = 0;
  EXPECT_FALSE(poll.poll(kLongest, clock, [&] { return ++looks == 1000; }));
  EXPECT_EQ(looks, kLongest / 1us + 1) << "it looks once more at the end";
  looks = 0;
  EXPECT_FALSE(poll.poll(Duration::zero(), clock, [&] { return ++looks == 1000; }));
  EXPECT_EQ(looks, 1);
}

TEST(BusyPoll, StopsToPollWhenLooksAreInVain) {
  BusyPoll poll = make_poll();
  const TickingClock clock;
  int polls = 0;
  while (poll.next(clock.now()) > Duration::zero()) {
    EXPECT_FALSE(poll.poll(kLongest, clock, [] { return false; }));
    ASSERT_LE(++polls, BusyPoll::kInVain);
  }
  EXPECT_EQ(polls, BusyPoll::kInVain);
}

}  // namespace
}  // namespace vpfs::net
