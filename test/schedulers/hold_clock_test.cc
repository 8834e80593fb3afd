#include <chrono>

#include <gtest/gtest.h>

#include "schedulers/hold_times.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

TEST(HoldClock, AFlowIsListedOnceUntilTheNextSend) {
  HoldClock clock;
  clock.grow(2);
  TimePoint now = {};
  for (int i = 0; i < 1000; ++i) {
    now += 1ms;
    clock.wait_for_turn(0, now);
    clock.wait_for_limit(1, now, now);
    clock.wait_for_turn(1, now);
    clock.leave(0, now);
    EXPECT_EQ(clock.fresh(), 2U);
  }
  clock.sent(true, now);
  EXPECT_EQ(clock.fresh(), 0U);
}

TEST(HoldClock, AKeptSlotCountsUntilTheNextRequestIsSent) {
  HoldClock clock;
  clock.grow(1);
  TimePoint now = TimePoint(1s);
  clock.start(0, now);
  clock.wait_for_turn(0, now);
  const auto expect = [&](const HoldTimes& times) { EXPECT_EQ(clock.held(0, now), times); };
  now += 1ms;
  clock.kept_back(now);
  now += 2ms;
  clock.kept_back(now);
  now += 3ms;
  expect({.kept_slot = 5ms, .depth = 1ms});
  clock.sent(true, now);
  now += 4ms;
  expect({.share = 4ms, .kept_slot = 5ms, .depth = 1ms});
  clock.kept_back(now);
  now += 5ms;
  clock.sent(false, now);
  now += 6ms;
  clock.leave(0, now);
  now += 7ms;
  expect({.share = 4ms, .kept_slot = 10ms, .depth = 1ms, .traffic_class = 6ms});
}

}  // namespace
}  // namespace vpfs
