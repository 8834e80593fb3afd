#include "control/allocation/psfa.h"

#include <gmock/gmock.h>

#include "test/control/allocation/pairs.h"

namespace vpfs::allocation {
namespace {

using namespace std::chrono_literals;
using test::Cycles;
using test::Did;
using ::testing::HasSubstr;

// A capacity of 1,600 bytes and a floor of 1: with at most 100 pairs, of 1.
class PsfaTest : public ::testing::Test {
 protected:
  std::uint64_t cap(const Cycles::Grants& grants, const std::string& job,
                    const std::string& stage = "s1") {
    return grants.at({job, stage}).bytes.value();
  }
  Cycles::Grants next(const std::vector<Did>& rows, const Amounts& less = {}) {
    auto grants = cycles_.next(rows, less);
    EXPECT_TRUE(grants) << grants.error().message;
    return grants ? *grants : Cycles::Grants{};
  }
  static Did did(const std::string& job, std::uint64_t bytes, Duration limited = {},
                 std::uint32_t weight = 1, const std::string& stage = "s1") {
    return {.job = job,
            .stage = stage,
            .pair = {.weight = weight, .arrived = {.bytes = bytes}, .limited = limited}};
  }

  std::unique_ptr<AllocationPolicy> policy_ =
      kPsfa.make({.capacity = {.bytes = 1600}, .floor = {.bytes = 1}});
  Cycles cycles_{*policy_};
};

TEST_F(PsfaTest, JobsThatTheirCapsHoldDivideByWeight) {
  // 1,598 beyond the floors, 2:1: 1,065 1/3 and 532 2/3, so the second has the missing unit.
  const auto grants = next({did("a", 10, 1s, 2), did("b", 900, 1s)});
  EXPECT_EQ(cap(grants, "a"), 1066U);
  EXPECT_EQ(cap(grants, "b"), 534U);
}

TEST_F(PsfaTest, WhatAJobLeavesGoesToTheOthersAtOnce) {
  // a wants 100 + 25, of which its floor is 1. b gets what is left.
  const auto grants = next({did("a", 100), did("b", 900, 1s)});
  EXPECT_EQ(cap(grants, "a"), 125U);
  EXPECT_EQ(cap(grants, "b"), 1475U);
}

TEST_F(PsfaTest, WhatAllLeaveIsHeadroomByWeight) {
  // 125 each; 1,350 are left.
  const auto grants = next({did("a", 100, {}, 2), did("b", 100)});
  EXPECT_EQ(cap(grants, "a"), 125U + 900U);
  EXPECT_EQ(cap(grants, "b"), 125U + 450U);
}

TEST_F(PsfaTest, AJobThatWasHeldCountsAsUnboundedForThreeMoreCycles) {
  (void)next({did("a", 0, 100ms), did("b", 900, 1s)});
  for (int cycle = 0; cycle < 3; ++cycle) {
    EXPECT_EQ(cap(next({did("a", 0, 99ms), did("b", 900, 1s)}), "a"), 800U) << cycle;
  }
  EXPECT_EQ(cap(next({did("a", 0, 99ms), did("b", 900, 1s)}), "a"), 1U);
}

TEST_F(PsfaTest, APairThatWasGoneIsNewAgain) {
  (void)next({did("a", 0, 1s), did("b", 900, 1s)});
  (void)next({did("b", 900, 1s)});
  EXPECT_EQ(cap(next({did("a", 0), did("b", 900, 1s)}), "a"), 1U);
}

TEST_F(PsfaTest, WithinAJobStagesGetWhatTheyWantAndTheRestInEqualParts) {
  // The floors leave 1,598; 49 more satisfy s1, and s2 is held.
  auto grants = next({did("a", 40, {}, 1, "s1"), did("a", 900, 1s, 1, "s2")});
  EXPECT_EQ(cap(grants, "a", "s1"), 50U);
  EXPECT_EQ(cap(grants, "a", "s2"), 1550U);
}

TEST_F(PsfaTest, AMaximumHoldsForAllStagesTogether) {
  Did one = did("a", 900, 1s, 1, "s1");
  Did other = did("a", 900, 1s, 1, "s2");
  one.pair.most.bytes = other.pair.most.bytes = 300;
  const auto grants = next({one, other, did("b", 10)});
  EXPECT_EQ(cap(grants, "a", "s1"), 150U);
  EXPECT_EQ(cap(grants, "a", "s2"), 150U);
  EXPECT_EQ(cap(grants, "b"), 1300U);
}

TEST_F(PsfaTest, SilentStagesCapsAreNotDividedAgain) {
  const auto grants = next({did("a", 900, 1s)}, {.bytes = 600});
  EXPECT_EQ(cap(grants, "a"), 1000U);
}

TEST_F(PsfaTest, WithoutRoomForAFloorTheErrorNamesTheJob) {
  Did small = did("b", 900, 1s, 1, "s1");
  Did also = did("b", 900, 1s, 1, "s2");
  small.pair.most.bytes = also.pair.most.bytes = 1;
  const auto grants = cycles_.next({did("a", 10), small, also});
  ASSERT_FALSE(grants);
  EXPECT_THAT(grants.error().message, HasSubstr("capacity.bytes"));
  EXPECT_THAT(grants.error().message, HasSubstr("job b"));
}

TEST(PsfaPolicy, EachResourceIsDividedByItselfIfItHasACapacity) {
  const auto policy =
      kPsfa.make({.capacity = {.bytes = 1600, .metadata_operations = 160}, .floor = {}});
  Cycles cycles(*policy);
  const auto grants = cycles.next({{.job = "a", .stage = "s", .pair = {.limited = 1s}}});
  ASSERT_TRUE(grants);
  EXPECT_EQ(grants->at({"a", "s"}), (Grant{.bytes = 1600, .metadata_operations = 160}));
}

TEST(PsfaPolicy, TheBoundOfAJobHoldsWithoutACapacity) {
  const auto policy = kPsfa.make({.capacity = {.bytes = 1600}, .floor = {}});
  Cycles cycles(*policy);
  const Did one{.job = "a", .stage = "s", .pair = {.most = {.operations = 40}, .limited = 1s}};
  Did two = one;
  two.stage = "t";
  const auto grants = cycles.next({one, two, {.job = "b", .stage = "s", .pair = {}}});
  ASSERT_TRUE(grants);
  EXPECT_EQ(*grants->at({"a", "s"}).operations + *grants->at({"a", "t"}).operations, 40U);
  EXPECT_FALSE(grants->at({"b", "s"}).operations);
}

}  // namespace
}  // namespace vpfs::allocation
