#include "fuse/posix/files/numbered.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::fuse {
namespace {

struct Thing {
  std::uint64_t number = 0;
};

TEST(Numbered, NumbersCountUpAndFreeOnesComeFirst) {
  Numbered<Thing> numbers(2);
  std::vector<Thing> things(5000);
  for (std::size_t i = 0; i < things.size(); ++i) EXPECT_EQ(numbers.add(things[i]), i + 2);
  for (std::size_t i = 0; i < things.size(); ++i) ASSERT_EQ(numbers.at(i + 2), &things[i]);
  numbers.remove(17);
  EXPECT_EQ(numbers.at(17), nullptr);
  Thing another;
  EXPECT_EQ(numbers.add(another), 17U);
  EXPECT_EQ(numbers.at(17), &another);
}

TEST(Numbered, NumbersThatWereNeverGivenLeadToNothing) {
  Numbered<Thing> numbers(1);
  Thing thing;
  (void)numbers.add(thing);
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{1} << 31U, UINT64_MAX - 5, UINT64_MAX}) {
    EXPECT_EQ(numbers.at(number), nullptr) << number;
  }
}

TEST(Numbered, WhatAnotherProcessHasGivenKeepsItsNumberAndGapsAreFilled) {
  Numbered<Thing> numbers(2);
  std::vector<Thing> things(4);
  EXPECT_TRUE(numbers.place(2, things[0]));
  EXPECT_TRUE(numbers.place(5, things[1]));
  EXPECT_FALSE(numbers.place(5, things[2])) << "it is taken";
  EXPECT_FALSE(numbers.place(1, things[2])) << "none is that small";
  EXPECT_FALSE(numbers.place(UINT64_MAX, things[2]));
  EXPECT_EQ(numbers.add(things[2]), 3U);
  EXPECT_EQ(numbers.add(things[3]), 4U);
  Thing last;
  EXPECT_EQ(numbers.add(last), 6U);
  EXPECT_EQ(numbers.at(5), &things[1]);
}

// What has changed on the other side is dropped here, and comes again.
TEST(Numbered, ANumberThatIsFreeForAMomentIsNotGivenTwice) {
  Numbered<Thing> numbers(1);
  std::vector<Thing> things(6);
  EXPECT_TRUE(numbers.place(4, things[0]));
  EXPECT_TRUE(numbers.place(2, things[1])) << "in any order";
  for (int i = 0; i < 2; ++i) {
    numbers.remove(4);
    EXPECT_TRUE(numbers.place(4, things[0]));
  }
  numbers.remove(2);
  std::vector<std::uint64_t> given;
  for (Thing& each : std::span(things).subspan(2)) given.push_back(numbers.add(each));
  std::ranges::sort(given);
  EXPECT_EQ(given, (std::vector<std::uint64_t>{1, 2, 3, 5}));
  EXPECT_EQ(numbers.at(4), &things[0]);
}

TEST(OpenObjects, AnObjectIsFoundByItsNumberUntilItIsClosed) {
  OpenObjects<Thing> open;
  const auto thing = std::make_shared<Thing>();
  const std::uint64_t number = open.add(thing);
  EXPECT_EQ(&open.at(number), thing.get());
  EXPECT_EQ(thing->number, number);
  EXPECT_EQ(open.find(number), thing);
  open.close(number);
  EXPECT_EQ(open.find(number), nullptr);
  EXPECT_EQ(open.size(), 0U);
}

}  // namespace
}  // namespace vpfs::fuse
