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

  std::unique_ptr<AllocationPolicy> policy_ = kTotal.make({});
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

TEST_F(TotalTest, WhatWasBeforeTheFirstCycleDoesNotCount) {
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

TEST_F(TotalTest, TheBoundOfAJobIsDividedAmongItsStagesByDemand) {
  const auto bounded = [](const std::string& stage, std::uint64_t bytes, Duration limited = {}) {
    return Did{.job = "a",
               .stage = stage,
               .pair = {.most = {.bytes = 1600}, .arrived = {.bytes = bytes}, .limited = limited}};
  };
  // Floors of one unit; s1 wants 40 + 10, and s2 is held.
  auto grants =
      next({bounded("s1", 40), bounded("s2", 900, std::chrono::seconds(1)), did("b", "s1", 0)});
  EXPECT_EQ(grants.at({"a", "s1"}).bytes, 50U);
  EXPECT_EQ(grants.at({"a", "s2"}).bytes, 1550U);
  EXPECT_EQ(grants.at({"a", "s1"}).operations, std::nullopt);
  EXPECT_EQ(grants.at({"a", "s1"}).elsewhere_total, 0U);
  EXPECT_EQ(grants.at({"b", "s1"}).bytes, std::nullopt);
  grants = next({bounded("s1", 40)});
  EXPECT_EQ(grants.at({"a", "s1"}).bytes, 1600U);
}

TEST(TotalPolicy, FloorsAreOfTheBound) {
  const auto policy = kTotal.make({.capacity = {}, .floor = {.bytes = 50}, .limits = {}});
  Cycles cycles(*policy);
  const auto smaller_cap = [&cycles](std::uint64_t most) {
    std::vector<Did> rows = {{.job = "a", .stage = "s1", .pair = {.most = {.bytes = most}}},
                             {.job = "a",
                              .stage = "s2",
                              .pair = {.most = {.bytes = most},
                                       .arrived = {.bytes = 10'000},
                                       .limited = std::chrono::seconds(1)}}};
    const Cycles::Grants grants = cycles.next(rows).value();
    const std::uint64_t first = grants.at({"a", "s1"}).bytes.value();
    EXPECT_EQ(first + grants.at({"a", "s2"}).bytes.value(), most);
    return first;
  };
  EXPECT_EQ(smaller_cap(3200), 50U);
  EXPECT_EQ(smaller_cap(320), 10U);  // a sixteenth for both
  EXPECT_EQ(smaller_cap(10), 1U);
  EXPECT_EQ(smaller_cap(1), 0U);
}

}  // namespace
}  // namespace vpfs::allocation
