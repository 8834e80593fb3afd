#include "control/allocation/total.h"

#include <gtest/gtest.h>

#include "test/control/allocation/pairs.h"

namespace vpfs::allocation {
namespace {

using test::Cycles;
using test::Did;

class TotalTest : public ::testing::Test {
 protected:
  Cycles::Grants next(const std::vector<Did>& rows) { return cycles_.next(rows).value(); }
  static Did did(const std::string& job, const std::string& stage, Cost done) {
    return {.job = job, .stage = stage, .pair = {.done = done}};
  }
  static Cost elsewhere(const Cycles::Grants& grants, const std::string& job,
                        const std::string& stage) {
    return grants.at({job, stage}).elsewhere_total.value();
  }

  std::unique_ptr<Policy> policy_ = kTotal.make({});
  Cycles cycles_{*policy_};
};

TEST_F(TotalTest, EachStageLearnsWhatTheOthersDidForTheSameJob) {
  (void)next({did("a", "s1", 0), did("a", "s2", 0), did("a", "s3", 0), did("b", "s1", 0)});
  const auto grants =
      next({did("a", "s1", 10), did("a", "s2", 200), did("a", "s3", 3000), did("b", "s1", 7)});
  EXPECT_EQ(elsewhere(grants, "a", "s1"), 3200U);
  EXPECT_EQ(elsewhere(grants, "a", "s2"), 3010U);
  EXPECT_EQ(elsewhere(grants, "a", "s3"), 210U);
  EXPECT_EQ(elsewhere(grants, "b", "s1"), 0U);
  EXPECT_EQ(grants.at({"a", "s1"}).bytes, std::nullopt);
}

TEST_F(TotalTest, WhatWasBeforeTheFirstCycleCountsForNobody) {
  const auto first = next({did("a", "s1", 1'000'000), did("a", "s2", 5)});
  EXPECT_EQ(elsewhere(first, "a", "s1"), 0U);
  EXPECT_EQ(elsewhere(first, "a", "s2"), 0U);
}

TEST_F(TotalTest, TotalsNeverDecreaseWhenAStageLeavesAndComesBack) {
  (void)next({did("a", "s1", 0), did("a", "s2", 0)});
  EXPECT_EQ(elsewhere(next({did("a", "s1", 0), did("a", "s2", 100)}), "a", "s1"), 100U);
  EXPECT_EQ(elsewhere(next({did("a", "s1", 0)}), "a", "s1"), 100U);
  EXPECT_EQ(elsewhere(next({did("a", "s1", 0), did("a", "s2", 140)}), "a", "s1"), 100U)
      << "what it did meanwhile is not known to be of this time";
  const auto later = next({did("a", "s1", 30), did("a", "s2", 150)});
  EXPECT_EQ(elsewhere(later, "a", "s1"), 110U);
  EXPECT_EQ(elsewhere(later, "a", "s2"), 30U);
  (void)next({did("a", "s1", 40)});
  EXPECT_EQ(elsewhere(next({did("a", "s1", 50), did("a", "s2", 150)}), "a", "s2"), 40U)
      << "30 before, and 10 since it is back";
}

}  // namespace
}  // namespace vpfs::allocation
