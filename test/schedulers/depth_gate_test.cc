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
  EXPECT_TRUE(gate.admits(6));
  EXPECT_FALSE(gate.admits(7));
  EXPECT_EQ(gate.reason(7), "as much cost is outstanding as the depth allows");
  gate.start(6);
  EXPECT_FALSE(gate.admits(1));
}

TEST(DepthGate, OneRequestAlwaysPassesWhenNothingIsOutstanding) {
  DepthGate gate({.requests = 0, .cost = 0});
  EXPECT_TRUE(gate.admits(kMaxCost));
  gate.start(kMaxCost);
  EXPECT_FALSE(gate.admits(1));
  gate.finish(kMaxCost);
  EXPECT_TRUE(gate.admits(1));
}

TEST(DepthGate, TheSumOfCostsDoesNotOverflow) {
  DepthGate gate({.requests = UINT32_MAX});
  gate.start(UINT64_MAX - 10);
  EXPECT_TRUE(gate.admits(10));
  EXPECT_FALSE(gate.admits(11));
}

}  // namespace
}  // namespace vpfs
