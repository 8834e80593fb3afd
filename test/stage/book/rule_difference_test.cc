#include "stage/book/rule_difference.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::stage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// One rule for each letter; its weight is the digit behind it.
LiveSet set_of(const std::string& text) {
  LiveSet set;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      auto last = std::make_shared<LiveRule>(*set.rules.back());
      last->text.words = {std::string("weight=") + c};
      set.rules.back() = last;
    } else {
      set.rules.push_back(std::make_shared<const LiveRule>(
          LiveRule{.text = {.name = std::string(1, c), .condition = "uid=1", .words = {}}}));
    }
  }
  return set;
}

std::vector<std::string> spelled(const std::string& before, const std::string& after) {
  std::vector<std::string> lines;
  for (const Difference& each : differences(set_of(before), set_of(after))) {
    lines.push_back(std::string(name_of(each.kind)) + " " + each.name);
  }
  return lines;
}

TEST(Differences, SetsThatAreEqualHaveNone) {
  EXPECT_THAT(spelled("", ""), IsEmpty());
  EXPECT_THAT(spelled("ab3c", "ab3c"), IsEmpty());
}

TEST(Differences, EachKindIsNamed) {
  EXPECT_THAT(spelled("abc", "ac"), ElementsAre("removed b"));
  EXPECT_THAT(spelled("ac", "abc"), ElementsAre("added b"));
  EXPECT_THAT(spelled("ab1c", "ab2c"), ElementsAre("changed b"));
  EXPECT_THAT(spelled("", "ab"), ElementsAre("added a", "added b"));
}

TEST(Differences, AsFewAsPossibleAreMoved) {
  EXPECT_THAT(spelled("abcd", "bcda"), ElementsAre("moved a"));
  EXPECT_THAT(spelled("abcd", "dabc"), ElementsAre("moved d"));
  EXPECT_THAT(spelled("ab", "ba").size(), 1U);
  EXPECT_THAT(spelled("abxc", "ca"), ElementsAre("removed b", "removed x", "moved c"));
}

TEST(Differences, LinesSayWhatAndWhere) {
  const auto moved = differences(set_of("ab1"), set_of("b2a"));
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved[0].before, "#2 b uid=1 weight=1");
  EXPECT_EQ(moved[0].after, "#1 b uid=1 weight=2");
}

TEST(Differences, PlacesCountFromTheBeginningOfTheWholeSet) {
  LiveSet before = set_of("abcd");
  LiveSet after = before;
  std::swap(after.rules[1], after.rules[2]);
  const auto moved = differences(before, after);
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved[0].before, "#3 c uid=1");
  EXPECT_EQ(moved[0].after, "#2 c uid=1");
}

// What the differences say, done to the old set, gives the new one.
TEST(Differences, TheyLeadFromOneSetToTheOther) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    const auto any = [&] {
      std::string letters = "abcdefgh";
      std::ranges::shuffle(letters, random);
      return letters.substr(0, random() % 9);
    };
    const std::string before = any();
    const std::string after = any();
    std::string kept;  // neither removed nor moved
    std::vector<std::string> put;
    const auto found = differences(set_of(before), set_of(after));
    for (const char c : before) {
      if (std::ranges::none_of(found, [&](const Difference& each) { return each.name[0] == c; })) {
        kept += c;
      }
    }
    std::string expected;
    for (const char c : after) {
      if (std::ranges::none_of(found, [&](const Difference& each) { return each.name[0] == c; })) {
        expected += c;
      }
    }
    EXPECT_EQ(kept, expected) << before << " to " << after;
    for (const Difference& each : found) {
      EXPECT_EQ(each.kind == Difference::Kind::removed, !after.contains(each.name[0]));
      EXPECT_EQ(each.kind == Difference::Kind::added, !before.contains(each.name[0]));
    }
  }
}

}  // namespace
}  // namespace vpfs::stage
