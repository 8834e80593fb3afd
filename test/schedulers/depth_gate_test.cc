#include "schedulers/depth_gate.h"

#include <gtest/gtest.h>

namespace vpfs {
namespace {

TEST(DepthGate, AdmitsUpToTheDepthInRequests) {
  DepthGate gate({.requests = 2});
  gate.start(kMaxCost);
  EXPECT_TRUE(gate.admits(kMaxCost));
  EXPECT_EQ(gate.reason(kMaxCost), "");
  gate.start(kMaxCost);
  EXPECT_FALSE(gate.admits(1));
  EXPECT_EQ(gate.reason(1), "as many requests are outstanding as the depth allows");
  gate.finish(kMaxCost);
  EXPECT_TRUE(gate.admits(1));
}

TEST(DepthGate, AdmitsUpToTheDepthInCost) {
  DepthGate gate({.requests = 100, .cost = 10});
  gate.start(4);
  gate.start(3);
  EXPECT_TRUE(gate.admits(3));
  EXPECT_FALSE(gate.admits(4));
  EXPECT_EQ(gate.reason(4), "as much cost is outstanding as the depth allows");
  gate.start(3);
  EXPECT_FALSE(gate.admits(1));
}

TEST(DepthGate, OneRequestAlwaysPassesWhenNothingIsOutstanding) {
  DepthGate gate({.requests = 0, .cost = 0});
  EXPECT_EQ(gate.depth().requests, 1U);
  EXPECT_TRUE(gate.admits(kMaxCost));
  gate.start(kMaxCost);
  EXPECT_FALSE(gate.admits(1));
  gate.finish(kMaxCost);
  EXPECT_TRUE(gate.admits(1));
}

// If it counted in full, the server would run dry before it and after it.
TEST(DepthGate, ARequestCountsForHalfOfTheCostAtMost) {
  DepthGate gate({.requests = 100, .cost = 11});
  gate.start(5);
  EXPECT_TRUE(gate.admits(kMaxCost));
  gate.start(kMaxCost);
  EXPECT_EQ(gate.load().cost, 11U);
  EXPECT_FALSE(gate.admits(1));
  gate.finish(5);
  EXPECT_TRUE(gate.admits(5));
  EXPECT_FALSE(gate.admits(6)) << "six of eleven are taken by the large one";
  gate.finish(kMaxCost);
  EXPECT_EQ(gate.load().cost, 0U);
}

TEST(DepthGate, WhatAnotherSchedulerSentCountsUntilItHasEnded) {
  DepthGate before({.requests = 4, .cost = 1000});
  before.start(400);
  before.start(400);
  DepthGate gate({.requests = 4, .cost = 100});
  gate.occupy(before.load());
  EXPECT_FALSE(gate.admits(1));
  gate.vacate(400);
  EXPECT_FALSE(gate.admits(1));
  gate.vacate(400);
  EXPECT_EQ(gate.load().cost, 0U);
  EXPECT_TRUE(gate.admits(50));
}

TEST(DepthGate, TheSumOfCostsDoesNotOverflow) {
  DepthGate gate({.requests = UINT32_MAX});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(gate.admits(kMaxCost));
    gate.start(kMaxCost);
  }
  EXPECT_EQ(gate.load().cost, 1000 * kMaxCost);
}

}  // namespace
}  // namespace vpfs
