#include "schedulers/policies/think_time.h"

#include <vector>

#include <gtest/gtest.h>

namespace vpfs {
namespace {

using namespace std::chrono_literals;

// A flow with one request in flight.
class ThinkTimeTest : public ::testing::Test {
 protected:
  // One request, answered after 1 ms; the next one comes `think` later.
  bool turn(Duration think) {
    time_.sent(0s, now_);
    now_ += 1ms;
    time_.answered(1ms, true, now_);
    now_ += think;
    return time_.arrived(1, now_);
  }
  void turns(int count, Duration think) {
    for (int i = 0; i < count; ++i) turn(think);
  }

  ThinkTime time_;
  TimePoint now_ = TimePoint{} + 1s;
};

TEST_F(ThinkTimeTest, IsTrustedAfterItCameBackInTimeSomeTimes) {
  EXPECT_FALSE(time_.is_known());
  turns(8, 200us);
  EXPECT_FALSE(time_.is_trusted());
  turns(1, 200us);
  EXPECT_TRUE(time_.is_trusted());
  EXPECT_TRUE(turn(200us));
}

TEST_F(ThinkTimeTest, TheMeanAndTheSpreadFollow) {
  turns(100, 200us);
  EXPECT_NEAR(static_cast<double>(time_.mean().count()), 200e3, 200);
  EXPECT_LT(time_.spread(), 2us);
  turns(100, 400us);
  EXPECT_NEAR(static_cast<double>(time_.mean().count()), 400e3, 400);
  for (int i = 0; i < 200; ++i) turn(i % 2 == 0 ? 300us : 500us);
  EXPECT_NEAR(static_cast<double>(time_.spread().count()), 100e3, 10e3);
}

// Three answers are left of a time with four in flight. Each request would be taken for the
// successor of the one three turns before.
TEST_F(ThinkTimeTest, WhatATimeWithSeveralInFlightLeavesDoesNotCountForEver) {
  turns(20, 60ms);
  for (int i = 0; i < 3; ++i) {
    time_.sent(0s, now_);
    time_.answered(1ms, true, now_);
  }
  turns(ThinkTime::kSerial - 1, 500us);
  EXPECT_GT(time_.mean(), 3ms);
  EXPECT_EQ(time_.thinking(), 3U);
  turns(100, 500us);
  EXPECT_EQ(time_.thinking(), 0U);
  EXPECT_NEAR(static_cast<double>(time_.mean().count()), 500e3, 5e3);
  EXPECT_TRUE(time_.is_trusted());
}

// Four programs that think for 20 ms. Requests come alone most of the time, but not always.
TEST_F(ThinkTimeTest, SeveralProgramsAreNotTakenForOne) {
  for (int i = 0; i < 4; ++i) {
    time_.sent(0s, now_);
    now_ += 1ms;
    time_.answered(1ms, true, now_);
    now_ += 4ms;
  }
  for (int i = 0; i < 2000; ++i) {
    (void)time_.arrived(i % 16 == 0 ? 2 : 1, now_);
    time_.sent(0s, now_);
    now_ += 1ms;
    time_.answered(1ms, true, now_);
    now_ += 4ms;
  }
  EXPECT_EQ(time_.thinking(), 4U);
  EXPECT_NEAR(static_cast<double>(time_.mean().count()), 19e6, 1e5);
}

TEST_F(ThinkTimeTest, SaysWhenTheNextRequestComes) {
  turns(100, 200us);
  time_.sent(0s, now_);
  EXPECT_NEAR(static_cast<double>((time_.earliest(1, now_) - now_).count()), 1.2e6, 2e3);
  now_ += 1ms;
  time_.answered(1ms, true, now_);
  EXPECT_NEAR(static_cast<double>((time_.earliest(0, now_) - now_).count()), 200e3, 1e3);
  EXPECT_GT(time_.latest(0, now_), now_ + 400us);
  EXPECT_LT(time_.latest(0, now_), now_ + 450us);
  EXPECT_EQ(time_.given_up_at(0, now_) - now_, 8 * (time_.latest(0, now_) - now_));
}

TEST_F(ThinkTimeTest, WhatTheServerHasToDoBeforeARequestIsAddedToItsResponse) {
  turns(100, 200us);
  const TimePoint latest = time_.latest(1, now_);
  time_.sent(20ms, now_);
  // The flow is not late before its answer can be there.
  EXPECT_GT(time_.latest(1, now_), latest + 20ms);
  // Other requests are sent as if it came soon: it is known to have come sooner than this.
  EXPECT_LT(time_.earliest(1, now_), now_ + 2ms);
}

TEST_F(ThinkTimeTest, OneLongResponseIsSoonForgotten) {
  turns(100, 200us);
  time_.sent(0s, now_);
  now_ += 16ms;
  time_.answered(16ms, true, now_);
  (void)time_.arrived(1, now_);
  turns(3, 200us);
  time_.sent(0s, now_);
  EXPECT_LT(time_.earliest(1, now_), now_ + 2ms);
}

TEST_F(ThinkTimeTest, AFlowThatIsLateNowAndThenStaysTrusted) {
  turns(100, 200us);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(turn(1ms)) << "late, and still awaited";
    EXPECT_TRUE(time_.is_trusted());
    turns(9, 200us);
  }
}

TEST_F(ThinkTimeTest, AFlowThatIsLateTooOftenIsNotTrusted) {
  turns(100, 200us);
  int trusted = 0;
  for (int i = 0; i < 100; ++i) {
    turn(50ms);
    turns(2, 200us);
    trusted += time_.is_trusted() ? 1 : 0;
  }
  EXPECT_LT(trusted, 10);
}

TEST_F(ThinkTimeTest, MissesTakeTheTrustForAWhile) {
  turns(100, 200us);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(turn(50ms)) << "late, and trusted until now";
  for (int i = 0; i < 2; ++i) turn(50ms);
  EXPECT_FALSE(time_.is_trusted());
  int until_trusted = 0;
  while (!time_.is_trusted() && until_trusted < 100) {
    turn(200us);
    ++until_trusted;
  }
  EXPECT_GE(until_trusted, int{ThinkTime::kLost});
  EXPECT_LT(until_trusted, 40);
}

TEST_F(ThinkTimeTest, AMissCountsOnceWhetherItIsNoticedBeforeOrAfter) {
  turns(100, 200us);
  time_.sent(0s, now_);
  now_ += 1ms;
  time_.answered(1ms, true, now_);
  now_ = time_.given_up_at(0, now_);
  for (int i = 0; i < 10; ++i) time_.gave_up(now_);
  EXPECT_TRUE(time_.is_trusted());
  now_ += 1us;
  EXPECT_TRUE(time_.arrived(1, now_));
  EXPECT_TRUE(time_.is_trusted());
}

// A client that begins its next file.
TEST_F(ThinkTimeTest, AFlowThatIsLateForAHundredMillisecondsKeepsItsPlace) {
  turns(100, 200us);
  EXPECT_TRUE(turn(99ms));
  turns(100, 200us);
  EXPECT_FALSE(turn(101ms));
}

TEST_F(ThinkTimeTest, AServerThatIsLateIsNotTheFlowsMiss) {
  turns(100, 200us);
  time_.sent(0s, now_);
  time_.gave_up(now_ + 1s);
  EXPECT_TRUE(time_.is_trusted());
}

TEST_F(ThinkTimeTest, LongThinkersAreNeverWaitedFor) {
  turns(200, 150ms);
  EXPECT_FALSE(time_.is_trusted());
}

// Times of answers are kept modulo 2^32 units.
TEST_F(ThinkTimeTest, AFlowThatComesBackAfterMinutesIsNotInTime) {
  for (const Duration more : std::vector<Duration>{0us, 200us, 137s, 138s}) {
    turns(100, 200us);
    EXPECT_FALSE(turn((Duration(64) * (std::int64_t{1} << 32)) + more)) << more / 1us << " us";
  }
}

TEST_F(ThinkTimeTest, ClientsThatWentAreForgotten) {
  // Eight clients at once, of which seven go.
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 8; ++i) time_.sent(0s, now_);
    now_ += 1ms;
    for (int i = 0; i < 8; ++i) time_.answered(1ms, true, now_);
    now_ += 200us;
    if (round == 19) break;
    for (std::uint32_t i = 0; i < 8; ++i) (void)time_.arrived(i + 1, now_);
  }
  EXPECT_EQ(time_.thinking(), 8U);
  (void)time_.arrived(1, now_);
  turns(200, 200us);
  EXPECT_LE(time_.thinking(), 1U);
  EXPECT_TRUE(time_.is_trusted());
  EXPECT_NEAR(static_cast<double>(time_.mean().count()), 200e3, 5e3);
}

}  // namespace
}  // namespace vpfs
