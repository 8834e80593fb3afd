#include "control/allocation/given.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/control/allocation/pairs.h"

namespace vpfs::allocation {
namespace {

using namespace std::chrono_literals;
using test::Cycles;
using test::Did;

class GivenTest : public ::testing::Test {
 protected:
  Cycles::Grants next(const std::vector<Did>& rows) { return cycles_.next(rows).value(); }
  // A cycle of the parent that mentions these.
  void give(const std::vector<std::pair<std::string, Grant>>& grants) {
    policy_.begin_parent();
    for (const auto& [job, grant] : grants) policy_.give(job, grant);
  }
  static Did did(const std::string& job, const std::string& stage, std::uint64_t bytes = 0,
                 Duration limited = {}, Cost done = 0) {
    return {.job = job,
            .stage = stage,
            .pair = {.arrived = {.bytes = bytes}, .limited = limited, .done = done}};
  }
  static Did done(const std::string& job, const std::string& stage, Cost done) {
    return did(job, stage, 0, {}, done);
  }
  static std::optional<std::uint64_t> bytes(const Cycles::Grants& grants, const std::string& job,
                                            const std::string& stage) {
    return grants.at({job, stage}).bytes;
  }
  static std::optional<Cost> elsewhere(const Cycles::Grants& grants, const std::string& job,
                                       const std::string& stage) {
    return grants.at({job, stage}).elsewhere_total;
  }

  GivenPolicy policy_{{.bytes = 1}};
  Cycles cycles_{policy_};
};

TEST_F(GivenTest, NothingIsGrantedBeforeTheParentHasGivenAnything) {
  EXPECT_EQ(next({did("a", "s1", 100)}).at({"a", "s1"}), Grant{});
}

TEST_F(GivenTest, WhatAJobWasGivenIsDividedAmongItsStagesByDemand) {
  give({{"a", {.bytes = 1600}}, {"b", {.bytes = 10}}});
  const auto grants = next({did("a", "s1", 40), did("a", "s2", 900, 1s), did("b", "s1", 9000, 1s)});
  EXPECT_EQ(bytes(grants, "a", "s1"), 50U);
  EXPECT_EQ(bytes(grants, "a", "s2"), 1550U);
  EXPECT_EQ(bytes(grants, "b", "s1"), 10U) << "what others leave is not its own";
  EXPECT_EQ(grants.at({"a", "s1"}).operations, std::nullopt);
  EXPECT_EQ(elsewhere(grants, "a", "s1"), std::nullopt);
}

TEST_F(GivenTest, CapsNeverAddUpToMoreThanWasGiven) {
  for (const std::uint64_t amount : {0ULL, 1ULL, 2ULL, 17ULL, 1'000'003ULL, ~0ULL}) {
    give({{"a", {.bytes = amount}}});
    const auto grants = next({did("a", "s1", 40), did("a", "s2", 900, 1s), did("a", "s3", ~0ULL)});
    const std::uint64_t sum =
        *bytes(grants, "a", "s1") + *bytes(grants, "a", "s2") + *bytes(grants, "a", "s3");
    EXPECT_EQ(sum, std::min(amount, kMostAmount));
  }
}

TEST_F(GivenTest, AJobThatTheParentDoesNotKnowHasNothingOfWhatIsDividedAmongAll) {
  give({{"a", {.bytes = 1600}}});
  EXPECT_EQ(bytes(next({did("a", "s1"), did("b", "s1")}), "b", "s1"), 0U);
  // Its next cycle does not mention a job that has gone.
  give({{"b", {.bytes = 700}}});
  const auto grants = next({did("a", "s1"), did("b", "s1")});
  EXPECT_EQ(bytes(grants, "a", "s1"), 0U);
  EXPECT_EQ(bytes(grants, "b", "s1"), 700U);
}

TEST_F(GivenTest, WhereSomeJobsHaveNoCapAnUnknownOneHasNoneEither) {
  give({{"a", {.bytes = 1600, .elsewhere_total = 0}}, {"b", {.elsewhere_total = 0}}});
  const auto grants = next({did("a", "s1"), did("b", "s1"), did("c", "s1")});
  EXPECT_EQ(bytes(grants, "a", "s1"), 1600U);
  EXPECT_EQ(bytes(grants, "b", "s1"), std::nullopt);
  EXPECT_EQ(bytes(grants, "c", "s1"), std::nullopt);
}

TEST_F(GivenTest, TotalsAreTheParentsAdditionsAndWhatTheGroupDid) {
  give({{"a", {.elsewhere_total = 5000}}});
  auto grants = next({done("a", "s1", 10), done("a", "s2", 20)});
  EXPECT_EQ(elsewhere(grants, "a", "s1"), 0U) << "the first total is the base";
  give({{"a", {.elsewhere_total = 5300}}});
  grants = next({done("a", "s1", 11), done("a", "s2", 25)});
  EXPECT_EQ(elsewhere(grants, "a", "s1"), 305U);
  EXPECT_EQ(elsewhere(grants, "a", "s2"), 301U);
  // A cycle of its own.
  grants = next({done("a", "s1", 11), done("a", "s2", 26)});
  EXPECT_EQ(elsewhere(grants, "a", "s1"), 306U);
  // Several of the parent.
  give({{"a", {.elsewhere_total = 5301}}});
  give({{"a", {.elsewhere_total = 5303}}});
  EXPECT_EQ(elsewhere(next({done("a", "s1", 11), done("a", "s2", 26)}), "a", "s2"), 304U);
}

TEST_F(GivenTest, AParentThatBeginsAgainChargesNoPairAndTotalsGoOn) {
  give({{"a", {.elsewhere_total = 5000}}});
  (void)next({done("a", "s1", 0), done("a", "s2", 0)});
  give({{"a", {.elsewhere_total = 5100}}});
  EXPECT_EQ(elsewhere(next({done("a", "s1", 0), done("a", "s2", 0)}), "a", "s1"), 100U);
  for (const Cost base : {0ULL, 1'000'000ULL}) {  // of two new terms
    policy_.forget_totals();
    const Cost before = *elsewhere(next({done("a", "s1", 0), done("a", "s2", 0)}), "a", "s1");
    give({{"a", {.elsewhere_total = base}}});
    EXPECT_EQ(elsewhere(next({done("a", "s1", 0), done("a", "s2", 0)}), "a", "s1"), before);
    give({{"a", {.elsewhere_total = base + 7}}});
    EXPECT_EQ(elsewhere(next({done("a", "s1", 0), done("a", "s2", 0)}), "a", "s1"), before + 7);
  }
}

TEST_F(GivenTest, ATotalThatGoesBackIsIgnored) {
  give({{"a", {.elsewhere_total = 5000}}});
  (void)next({done("a", "s1", 0)});
  give({{"a", {.elsewhere_total = 4000}}});
  (void)next({done("a", "s1", 0)});
  give({{"a", {.elsewhere_total = 5001}}});
  EXPECT_EQ(elsewhere(next({done("a", "s1", 0)}), "a", "s1"), 1U);
}

TEST_F(GivenTest, WithoutItsParentCapsEndAndTotalsGoOnWithinTheGroup) {
  give({{"a", {.bytes = 100, .elsewhere_total = 5000}}});
  (void)next({done("a", "s1", 0), done("a", "s2", 0)});
  policy_.end_parent();
  auto grants = next({done("a", "s1", 8), done("a", "s2", 0)});
  EXPECT_EQ(bytes(grants, "a", "s1"), std::nullopt);
  EXPECT_EQ(elsewhere(grants, "a", "s2"), 8U);
  // What was done elsewhere meanwhile is not a debt.
  give({{"a", {.bytes = 100, .elsewhere_total = 9000}}});
  grants = next({done("a", "s1", 8), done("a", "s2", 0)});
  EXPECT_EQ(elsewhere(grants, "a", "s2"), 8U);
  EXPECT_EQ(bytes(grants, "a", "s2"), 50U);
}

TEST_F(GivenTest, AParentThatGivesNoTotalsMakesNone) {
  give({{"a", {.bytes = 100, .elsewhere_total = 5000}}});
  EXPECT_TRUE(elsewhere(next({done("a", "s1", 0)}), "a", "s1"));
  give({});
  EXPECT_TRUE(elsewhere(next({done("a", "s1", 0)}), "a", "s1"));
  give({{"a", {.bytes = 100}}});
  EXPECT_FALSE(elsewhere(next({done("a", "s1", 0)}), "a", "s1"));
}

}  // namespace
}  // namespace vpfs::allocation
