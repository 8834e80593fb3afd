#include "proxy/client_turns.h"

#include <vector>

#include <gtest/gtest.h>

#include "test/proxy/sweep_times.h"
#include "test/support/start_time.h"

namespace vpfs::proxy {
namespace {

using namespace std::chrono_literals;
using test::kStart;

ClientTurns::Ticket ticket(std::uint64_t number) {
  return {.arrival = kStart + number * 1us, .worker = 0, .number = number};
}

TEST(ClientTurns, OneAtATimeAndTheOldestFirst) {
  ClientTurns turns;
  EXPECT_TRUE(turns.take(ticket(1), kStart, kStall));
  EXPECT_FALSE(turns.take(ticket(3), kStart, kStall));
  EXPECT_FALSE(turns.take(ticket(2), kStart, kStall));
  turns.end(ticket(1), kStart, kStall);
  EXPECT_FALSE(turns.take(ticket(4), kStart, kStall));
  EXPECT_FALSE(turns.take(ticket(3), kStart, kStall));
  EXPECT_TRUE(turns.take(ticket(2), kStart, kStall));
}

// A session asks again before it submits a request.
TEST(ClientTurns, WhatHasTheTurnKeepsItIfItAsksAgain) {
  ClientTurns turns;
  EXPECT_TRUE(turns.take(ticket(1), kStart, kStall));
  EXPECT_TRUE(turns.take(ticket(1), kStart + kTick, kStall));
  turns.end(ticket(1), kStart + kTick, kStall);
  EXPECT_TRUE(turns.idle());
  EXPECT_TRUE(turns.take(ticket(2), kStart + kTick, kStall));
}

TEST(ClientTurns, ATurnThatIsNotEndedExpires) {
  ClientTurns turns;
  EXPECT_TRUE(turns.take(ticket(1), kStart, kStall));
  turns.expire(kStart + kStall - 1ns, kStall);
  EXPECT_FALSE(turns.idle());
  turns.expire(kStart + kStall, kStall);
  EXPECT_TRUE(turns.idle());
}

TEST(ClientTurns, WhatHasGoneAwayBlocksNoOther) {
  ClientTurns turns;
  EXPECT_TRUE(turns.take(ticket(1), kStart, kStall));
  EXPECT_FALSE(turns.take(ticket(2), kStart, kStall));
  EXPECT_FALSE(turns.take(ticket(3), kStart, kStall));
  turns.withdraw(ticket(2));
  turns.end(ticket(1), kStart, kStall);
  EXPECT_TRUE(turns.take(ticket(3), kStart, kStall));
  turns.end(ticket(1), kStart, kStall);
  EXPECT_FALSE(turns.take(ticket(4), kStart, kStall)) << "the turn of another ended";
  turns.end(ticket(3), kStart, kStall);
  turns.withdraw(ticket(4));
  EXPECT_TRUE(turns.idle());
}

TEST(ClientTurns, ThePauseIsAsLongAsTheDebtAndNeverLongerThanTheStall) {
  for (const auto& [owed, pause] : std::vector<std::pair<Duration, Duration>>{
           {0ms, 0ms}, {300ms, 300ms}, {2s, 2s}, {1min, 2s}}) {
    ClientTurns turns;
    ASSERT_TRUE(turns.take(ticket(1), kStart, kStall));
    turns.owe(owed);
    turns.end(ticket(1), kStart, kStall);
    if (pause > 0ms) {
      EXPECT_FALSE(turns.take(ticket(2), kStart + pause - 1ns, kStall));
    }
    EXPECT_TRUE(turns.take(ticket(2), kStart + pause, kStall));
  }
}

// The turns of a client whose requests never end: the next one goes in time all the same.
TEST(ClientTurns, NoneIsStoppedForLongerThanATurnAndAPause) {
  ClientTurns turns;
  TimePoint last = kStart;
  std::uint64_t next = 1;
  for (TimePoint now = kStart; now < kStart + 1min; now += kTick) {
    turns.owe(kTick);
    if (!turns.take(ticket(next), now, kStall)) continue;
    EXPECT_LE(now - last, 2 * kStall + kTick);
    last = now;
    ++next;
  }
  EXPECT_GE(next, 15U);
}

}  // namespace
}  // namespace vpfs::proxy
