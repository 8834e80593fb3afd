#include "control/members/view_keeper.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::members {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr std::uint64_t kTerm = 3 * kEpochsOfATerm;
constexpr ViewKeeper::Limits kLimits{.settle = 800ms, .join = 200ms, .leave = 300ms};

class ViewKeeperTest : public ::testing::Test {
 protected:
  static TimePoint at(Duration since) { return TimePoint(1000s) + since; }
  static View last_view(const std::vector<std::string>& names) {
    View view{.epoch = kTerm - 5};
    for (const std::string& each : names) view.members.push_back({.name = each});
    return view;
  }
  void join(const std::string& name, Duration since, const View& told = {}) {
    keeper_.joined({.name = name}, told, at(since));
  }
  // The names in the next view; empty: it is not time for one.
  std::vector<std::string> next(Duration since) {
    std::vector<std::string> names;
    if (const auto view = keeper_.next(at(since))) {
      for (const Member& each : view->members) names.push_back(each.name);
    }
    return names;
  }

  ViewKeeper keeper_{kTerm, at(0s), kLimits};
};

TEST_F(ViewKeeperTest, TheFirstLeaderOfASiteWaitsForOthersToStart) {
  EXPECT_EQ(keeper_.due(), std::nullopt);
  join("b", 10ms);
  EXPECT_EQ(keeper_.due(), at(800ms));
  join("a", 700ms);
  EXPECT_THAT(next(799ms), ElementsAre());
  EXPECT_THAT(next(800ms), ElementsAre("a", "b"));
  EXPECT_EQ(keeper_.view().epoch, kTerm + 1);
  EXPECT_THAT(next(900ms), ElementsAre());
  EXPECT_EQ(keeper_.due(), std::nullopt);
}

TEST_F(ViewKeeperTest, ASuccessorGoesOnAsSoonAsTheMembersOfTheLastViewAreThere) {
  keeper_.is_gone("a");
  const View told = last_view({"a", "b", "c"});
  join("b", 10ms, told);
  EXPECT_THAT(next(10ms), ElementsAre());
  join("c", 20ms, told);
  EXPECT_THAT(next(20ms), ElementsAre("b", "c"));
}

TEST_F(ViewKeeperTest, ASuccessorDoesNotWaitForLong) {
  const View told = last_view({"a", "b"});
  join("b", 10ms, told);
  EXPECT_THAT(next(799ms), ElementsAre());
  EXPECT_THAT(next(800ms), ElementsAre("b"));
}

TEST_F(ViewKeeperTest, TheLatestOfTheToldViewsCounts) {
  View older = last_view({"a", "b", "c"});
  older.epoch -= 2;
  join("a", 10ms, last_view({"a", "b"}));
  join("b", 20ms, older);
  EXPECT_THAT(next(20ms), ElementsAre("a", "b"));
}

TEST_F(ViewKeeperTest, OneThatSeemedGoneCounts) {
  keeper_.is_gone("a");
  const View told = last_view({"a", "b"});
  join("a", 10ms, told);
  EXPECT_THAT(next(10ms), ElementsAre()) << "b is missing";
  join("b", 20ms, told);
  EXPECT_THAT(next(20ms), ElementsAre("a", "b"));
}

TEST_F(ViewKeeperTest, ThoseThatJoinTogetherComeIntoOneView) {
  join("a", 0s);
  ASSERT_THAT(next(800ms), ElementsAre("a"));
  join("b", 1000ms);
  join("c", 1150ms);
  EXPECT_EQ(keeper_.due(), at(1200ms));
  EXPECT_THAT(next(1199ms), ElementsAre());
  EXPECT_THAT(next(1200ms), ElementsAre("a", "b", "c"));
  EXPECT_EQ(keeper_.due(), std::nullopt);
}

TEST_F(ViewKeeperTest, OneThatComesBackAtOnceHasNotLeft) {
  join("a", 0s);
  join("b", 0s);
  ASSERT_THAT(next(800ms), ElementsAre("a", "b"));
  keeper_.left("b", at(1000ms));
  EXPECT_EQ(keeper_.due(), at(1300ms));
  join("b", 1299ms);
  EXPECT_THAT(next(1300ms), ElementsAre());
  EXPECT_EQ(keeper_.due(), std::nullopt);
}

TEST_F(ViewKeeperTest, OneThatStaysAwayLeaves) {
  join("a", 0s);
  join("b", 0s);
  ASSERT_THAT(next(800ms), ElementsAre("a", "b"));
  keeper_.left("b", at(1000ms));
  EXPECT_THAT(next(1299ms), ElementsAre());
  EXPECT_THAT(next(1300ms), ElementsAre("a"));
  EXPECT_EQ(keeper_.view().epoch, kTerm + 2);
  EXPECT_EQ(keeper_.due(), std::nullopt);
  join("b", 5000ms);
  EXPECT_THAT(next(5200ms), ElementsAre("a", "b"));
}

TEST_F(ViewKeeperTest, WhileOneMayComeBackAnotherMayJoin) {
  join("a", 0s);
  join("b", 0s);
  ASSERT_THAT(next(800ms), ElementsAre("a", "b"));
  join("c", 900ms);
  keeper_.left("b", at(1000ms));
  EXPECT_THAT(next(1100ms), ElementsAre("a", "b", "c"));
  EXPECT_THAT(next(1300ms), ElementsAre("a", "c"));
}

TEST_F(ViewKeeperTest, WithNoMemberTheViewStays) {
  join("a", 0s);
  ASSERT_THAT(next(800ms), ElementsAre("a"));
  keeper_.left("a", at(1000ms));
  EXPECT_EQ(keeper_.due(), std::nullopt);
  EXPECT_THAT(next(2000ms), ElementsAre());
  join("b", 3000ms);
  EXPECT_THAT(next(3200ms), ElementsAre("b"));
}

TEST_F(ViewKeeperTest, OtherAddressesAreAnotherView) {
  join("a", 0s);
  ASSERT_THAT(next(800ms), ElementsAre("a"));
  keeper_.left("a", at(1000ms));
  keeper_.joined({.name = "a", .stage_addresses = {"tcp:h:1"}}, {}, at(1100ms));
  EXPECT_THAT(next(1100ms), ElementsAre("a"));
  EXPECT_EQ(keeper_.view().epoch, kTerm + 2);
}

// Its new process has no cycles of the view's term, so stages would refuse it.
TEST_F(ViewKeeperTest, AnotherProcessOfAMemberIsAnotherView) {
  keeper_.joined({.name = "a", .incarnation = 1}, {}, at(0s));
  ASSERT_THAT(next(800ms), ElementsAre("a"));
  keeper_.left("a", at(1000ms));
  keeper_.joined({.name = "a", .incarnation = 2}, {}, at(1050ms));
  EXPECT_EQ(keeper_.due(), at(1050ms));
  EXPECT_THAT(next(1050ms), ElementsAre("a"));
  EXPECT_EQ(keeper_.view().epoch, kTerm + 2);
}

TEST_F(ViewKeeperTest, ViewsDoNotFollowEachOtherAtOnce) {
  keeper_.joined({.name = "a", .incarnation = 1}, {}, at(0s));
  ASSERT_THAT(next(800ms), ElementsAre("a"));
  keeper_.joined({.name = "a", .incarnation = 2}, {}, at(810ms));
  EXPECT_THAT(next(810ms), ElementsAre());
  EXPECT_EQ(keeper_.due(), at(900ms));
  EXPECT_THAT(next(900ms), ElementsAre("a"));
}

TEST_F(ViewKeeperTest, OneThatComesAndGoesWaitsLongerAndLonger) {
  join("a", 0s);
  ASSERT_THAT(next(800ms), ElementsAre("a"));
  const auto come_and_go = [this](Duration since) {
    join("b", since);
    const Duration joins = *keeper_.due() - at(since);
    (void)next(since + joins);
    keeper_.left("b", at(since + joins));
    (void)next(since + joins + 300ms);
    return joins;
  };
  EXPECT_EQ(come_and_go(1s), 200ms);
  EXPECT_EQ(come_and_go(2s), 200ms);
  EXPECT_EQ(come_and_go(3s), 200ms);
  EXPECT_EQ(come_and_go(4s), 400ms);
  EXPECT_EQ(come_and_go(6s), 800ms);
  EXPECT_EQ(come_and_go(100s), 200ms);
}

TEST_F(ViewKeeperTest, ATermHasBoundedEpochs) {
  join("a", 0s);
  ASSERT_THAT(next(800ms), ElementsAre("a"));
  std::uint64_t views = 1;
  for (std::uint64_t i = 1; i < kEpochsOfATerm && !keeper_.is_used_up(); ++i) {
    const Duration now = i * 61s;
    join("b", now);
    views += static_cast<std::uint64_t>(!next(now + 200ms).empty());
    keeper_.left("b", at(now + 300ms));
    views += static_cast<std::uint64_t>(!next(now + 600ms).empty());
  }
  EXPECT_LT(keeper_.view().epoch, kTerm + kEpochsOfATerm);
  EXPECT_EQ(views, kEpochsOfATerm - 1);
  join("c", 9'000'000s);
  EXPECT_THAT(next(9'000'001s), ElementsAre());
  EXPECT_EQ(keeper_.due(), std::nullopt);
}

}  // namespace
}  // namespace vpfs::members
