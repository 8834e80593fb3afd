#include "fuse/posix/lock_watch.h"

#include <algorithm>
#include <deque>

#include <gtest/gtest.h>

#include "test/support/start_time.h"

namespace vpfs::fuse {
namespace {

using namespace std::chrono_literals;
using test::kStart;

constexpr AppId kHeld{1};
constexpr AppId kOther{2};
constexpr std::uint64_t kDirectory = 11;
constexpr std::uint64_t kElsewhere = 12;

class LockWatchTest : public ::testing::Test {
 protected:
  TimePoint hold(pid_t thread, std::uint64_t second = 0) {
    const std::array objects = {kDirectory, second};
    return watch_.may_hold_until(objects, {.app = kHeld, .thread = thread}, now_);
  }
  TimePoint ask(pid_t thread) {
    return watch_.may_hold_until(std::array{kDirectory},
                                 {.app = kHeld, .thread = thread, .asks = true}, now_);
  }
  void see(AppId app, std::uint64_t object = kDirectory) {
    watch_.see(std::array{object, std::uint64_t{0}}, app, now_);
  }

  LockWatch watch_;
  TimePoint now_ = kStart;
};

TEST_F(LockWatchTest, AloneARequestIsHeldForABoundedTime) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(hold(1), now_ + LockWatch::kLongestHold);
    now_ += LockWatch::kLongestHold;
  }
}

TEST_F(LockWatchTest, RequestsHeldTogetherGoTogether) {
  const TimePoint end = hold(1);
  now_ += 200ms;
  EXPECT_EQ(hold(2), end);
  EXPECT_EQ(hold(1), end) << "it went in time, and came again";
}

TEST_F(LockWatchTest, WhatMayHaveWaitedForTheLockIsNotHeld) {
  now_ = hold(1);
  EXPECT_EQ(hold(2), now_);
  EXPECT_EQ(hold(3), now_);
  EXPECT_EQ(hold(1), now_ + LockWatch::kLongestHold) << "its turn has come again";
}

// A look-up, and the making of the name, without letting go of the lock.
TEST_F(LockWatchTest, OfOneVisitOnlyTheFirstRequestIsHeld) {
  now_ = ask(1);
  EXPECT_EQ(hold(1), now_);
  EXPECT_EQ(ask(2), now_);
  EXPECT_EQ(hold(2), now_);
  now_ = ask(2);
  EXPECT_EQ(hold(2), now_);
  EXPECT_EQ(hold(2), now_ + LockWatch::kLongestHold);
}

TEST_F(LockWatchTest, OneThatOnlyAsksIsHeldNowAndThen) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ask(1), now_ + LockWatch::kLongestHold);
    now_ += LockWatch::kLongestHold;
    for (unsigned step = 1; step < LockWatch::kMostSteps; ++step) EXPECT_EQ(ask(1), now_);
  }
}

TEST_F(LockWatchTest, WhereAnotherWasSeenNothingIsHeld) {
  (void)hold(1);
  see(kOther);
  EXPECT_EQ(hold(1), now_);
  now_ += LockWatch::kMemory - 1ms;
  EXPECT_EQ(hold(2), now_);
  see(kOther, kElsewhere);
  now_ += LockWatch::kMemory;
  EXPECT_EQ(hold(1), now_ + LockWatch::kLongestHold) << "it has not come here since";
}

TEST_F(LockWatchTest, OneOfTwoLocksIsEnough) {
  see(kOther, kElsewhere);
  EXPECT_EQ(hold(1, kElsewhere), now_);
  EXPECT_GT(hold(1), now_);
}

// Threads whose limit lets nothing go want the lock again and again; it goes round. Another
// application comes at any time.
TEST_F(LockWatchTest, OneThatComesWaitsForTwoHoldsAtMost) {
  for (const int threads : {1, 2, 7, static_cast<int>(LockWatch::kMostWaiting)}) {
    for (int comes_after = 0; comes_after < 3 * threads; ++comes_after) {
      watch_ = {};
      std::deque<pid_t> queue;
      for (int i = 1; i <= threads; ++i) queue.push_back(i);
      const auto next = [&] {
        const pid_t thread = queue.front();
        queue.pop_front();
        now_ = std::max(now_, ask(thread));
        now_ = std::max(now_, hold(thread));
        queue.push_back(thread);
      };
      for (int i = 0; i < comes_after; ++i) next();
      const TimePoint came = now_;
      for (int i = 0; i < threads; ++i) next();  // those before it
      EXPECT_LE(now_ - came, 2 * LockWatch::kLongestHold) << threads << ", " << comes_after;
    }
  }
}

// Processes that end after one call never come again.
TEST_F(LockWatchTest, NewThreadsAreHeldToo) {
  for (const bool are_known : {true, false}) {
    watch_ = {};
    int holds = 0;
    for (pid_t thread = 1; thread <= 650; ++thread) {
      const TimePoint until = hold(are_known ? thread : 0);
      if (until > now_) ++holds;
      now_ = until;
    }
    EXPECT_EQ(holds, 10) << are_known;
  }
}

TEST_F(LockWatchTest, RemembersABoundedNumberOfObjects) {
  constexpr std::uint64_t kFirst = 1000;
  for (const std::size_t others : {LockWatch::kMostObjects - 1, LockWatch::kMostObjects}) {
    watch_ = {};
    see(kOther);
    for (std::uint64_t object = kFirst; object < kFirst + others; ++object) see(kOther, object);
    const bool is_forgotten = hold(1) > now_;
    EXPECT_EQ(is_forgotten, others == LockWatch::kMostObjects) << others;
  }
}

}  // namespace
}  // namespace vpfs::fuse
