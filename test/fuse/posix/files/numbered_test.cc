#include "fuse/posix/files/numbered.h"

#include <memory>
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
  numbers.placed();
  EXPECT_EQ(numbers.add(things[2]), 3U);
  EXPECT_EQ(numbers.add(things[3]), 4U);
  Thing last;
  EXPECT_EQ(numbers.add(last), 6U);
  EXPECT_EQ(numbers.at(5), &things[1]);
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
