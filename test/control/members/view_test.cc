#include "control/members/view.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace vpfs::members {
namespace {

constexpr int kStages = 10'000;

View view_of(int members) {
  View view{.epoch = 1};
  for (int i = 0; i < members; ++i) {
    view.members.push_back({.name = fmt::format("tcp:admin{}.example:7313", i)});
  }
  return view;
}

std::string owner(int stage, const View& view) {
  return owner_of(fmt::format("stage-{}", stage), view)->name;
}

TEST(View, WithoutMembersAStageHasNoOwner) {
  EXPECT_EQ(owner_of("s0", View{}), nullptr);
}

TEST(View, EachMemberServesItsPartOfTheStages) {
  for (const int members : {1, 2, 4, 16}) {
    const View view = view_of(members);
    std::map<std::string, int> stages;
    for (int i = 0; i < kStages; ++i) ++stages[owner(i, view)];
    const int part = kStages / members;
    EXPECT_EQ(stages.size(), static_cast<std::size_t>(members));
    for (const auto& [name, count] : stages) {
      EXPECT_GT(count, part * 85 / 100) << name;
      EXPECT_LT(count, part * 115 / 100) << name;
    }
  }
}

TEST(View, TheOrderOfMembersDoesNotMatter) {
  const View view = view_of(5);
  View other = view;
  std::swap(other.members.front(), other.members.back());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(owner(i, view), owner(i, other));
}

TEST(View, AMemberThatLeavesCostsOnlyItsOwnStagesAnother) {
  const View before = view_of(4);
  for (std::size_t gone = 0; gone < 4; ++gone) {
    View after = before;
    after.members.erase(after.members.begin() + static_cast<std::ptrdiff_t>(gone));
    const std::string& name = before.members[gone].name;
    for (int i = 0; i < kStages; ++i) {
      if (owner(i, before) == name) continue;
      ASSERT_EQ(owner(i, before), owner(i, after));
    }
  }
}

TEST(View, AMemberThatJoinsTakesOnlyWhatIsItsOwn) {
  const View before = view_of(3);
  const View after = view_of(4);
  int moved = 0;
  for (int i = 0; i < kStages; ++i) {
    if (owner(i, before) == owner(i, after)) continue;
    ++moved;
    ASSERT_EQ(owner(i, after), after.members.back().name);
  }
  EXPECT_NEAR(moved, kStages / 4, kStages / 40);
}

// Members of different versions divide the same site.
TEST(View, OwnersAreTheSameInAllVersions) {
  const View view = view_of(4);
  std::string owners;
  for (int i = 0; i < 24; ++i) owners += owner(i, view).substr(9, 1);
  EXPECT_EQ(owners, "111231110110323121330120");
}

TEST(View, TermsLeaveRoomForEpochs) {
  EXPECT_EQ(term_of_members(1), kEpochsOfATerm);
  EXPECT_EQ(term_of_members(kEpochsOfATerm), kEpochsOfATerm);
  EXPECT_EQ(term_of_members(kEpochsOfATerm + 1), 2 * kEpochsOfATerm);
}

}  // namespace
}  // namespace vpfs::members
