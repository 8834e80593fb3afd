#include "tools/wishes/wishes.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::wishes {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

Bounds bounds(std::string_view text) {
  Result<Bounds> parsed = Bounds::parse(text);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed ? std::move(*parsed) : Bounds();
}

std::string granted(std::string_view text, Wish wish, std::string_view value) {
  const Result<std::string> word = bounds(text).grant(wish, value);
  return word ? *word : "refused: " + word.error().message;
}

std::string mistake(std::string_view text) {
  const Result<Bounds> parsed = Bounds::parse(text);
  return parsed ? "none" : parsed.error().message;
}

TEST(Wishes, AreWordsOfARule) {
  constexpr std::string_view kBounds = "weight=1..8 rate=..500MiB/s deadline=5ms..";
  EXPECT_EQ(granted(kBounds, Wish::weight, "4"), "weight=4");
  EXPECT_EQ(granted(kBounds, Wish::rate, "50MiB/s"), "rate=50MiB/s");
  EXPECT_EQ(granted(kBounds, Wish::rate, "1.5 GB/s"),
            "refused: \"1.5 GB/s\" is out of bounds: "
            "expected a rate of at most 500MiB/s, such "
            "as 50MiB/s");
  EXPECT_EQ(granted(kBounds, Wish::rate, " 1.5 MB/s"), "rate=1.5MB/s");
  EXPECT_EQ(granted(kBounds, Wish::deadline, "20ms"), "latency=20ms");
}

TEST(Wishes, BothEndsOfABoundAreAllowedAndNothingBeyond) {
  EXPECT_EQ(granted("weight=2..8", Wish::weight, "2"), "weight=2");
  EXPECT_EQ(granted("weight=2..8", Wish::weight, "8"), "weight=8");
  EXPECT_THAT(granted("weight=2..8", Wish::weight, "1"), HasSubstr("out of bounds"));
  EXPECT_THAT(granted("weight=2..8", Wish::weight, "9"), HasSubstr("out of bounds"));
  EXPECT_EQ(granted("rate=1KiB/s..1MiB/s", Wish::rate, "1048576B/s"), "rate=1048576B/s");
  EXPECT_THAT(granted("rate=1KiB/s..1MiB/s", Wish::rate, "1048577B/s"), HasSubstr("out of bounds"));
  EXPECT_EQ(granted("deadline=5ms..1s", Wish::deadline, "5000us"), "latency=5000us");
  EXPECT_THAT(granted("deadline=5ms..1s", Wish::deadline, "4999us"), HasSubstr("out of bounds"));
}

TEST(Wishes, AnOpenEndIsThatOfTheConfiguration) {
  EXPECT_EQ(granted("weight=..", Wish::weight, "1000000"), "weight=1000000");
  EXPECT_THAT(granted("weight=..", Wish::weight, "1000001"), HasSubstr("out of bounds"));
  EXPECT_THAT(granted("weight=..", Wish::weight, "0"), HasSubstr("out of bounds"));
  EXPECT_THAT(granted("rate=..", Wish::rate, "0B/s"), HasSubstr("out of bounds"));
  EXPECT_THAT(granted("deadline=..", Wish::deadline, "0"), HasSubstr("out of bounds"));
  EXPECT_THAT(granted("deadline=..", Wish::deadline, "25h"), HasSubstr("out of bounds"));
}

TEST(Wishes, ARateMayCountForTheWholeSite) {
  EXPECT_EQ(granted("total_rate=..1GiB/s", Wish::rate, "1GiB/s"), "total_rate=1GiB/s");
}

TEST(Wishes, WhatHasNoBoundMayNotBeAskedFor) {
  EXPECT_EQ(granted("weight=1..8", Wish::rate, "50MiB/s"),
            "refused: the administrator has set no bounds for a rate");
  EXPECT_EQ(granted("", Wish::weight, "4"),
            "refused: the administrator has set no bounds for a weight");
}

TEST(Wishes, ABadValueIsRefusedOnOneLineThatSaysWhatWasExpected) {
  const std::string huge(5000, '9');
  const std::vector<std::pair<Wish, std::string>> bad = {
      {Wish::weight, ""},
      {Wish::weight, "-4"},
      {Wish::weight, "+4"},
      {Wish::weight, "4.5"},
      {Wish::weight, " 4"},
      {Wish::weight, "4x"},
      {Wish::weight, "0x4"},
      {Wish::weight, "99999999999999999999999"},
      {Wish::weight, huge},
      {Wish::weight, "4\n5"},
      {Wish::weight, "$(id)"},
      {Wish::weight, "4;reboot"},
      {Wish::rate, ""},
      {Wish::rate, "50"},
      {Wish::rate, "50MiB"},
      {Wish::rate, "-1MiB/s"},
      {Wish::rate, "50MiBs"},
      {Wish::rate, huge + "MiB/s"},
      {Wish::rate, "5 Mi\nB/s"},
      {Wish::rate, "18446744073709551616B/s"},
      {Wish::deadline, "20"},
      {Wish::deadline, "-20ms"},
      {Wish::deadline, "20 msec"},
      {Wish::deadline, "20ms\n"},
      {Wish::deadline, "`id`"},
      {Wish::deadline, std::string("20\0ms", 5)}};
  for (const auto& [wish, value] : bad) {
    const std::string answer = granted("weight=1..8 rate=.. deadline=..", wish, value);
    EXPECT_THAT(answer, HasSubstr("refused: ")) << value;
    EXPECT_THAT(answer, HasSubstr("expected a ")) << value;
    EXPECT_THAT(answer, Not(HasSubstr("\n"))) << value;
    EXPECT_LT(answer.size(), 400U) << value;
  }
}

TEST(Wishes, AnExampleIsWithinTheBounds) {
  EXPECT_THAT(granted("rate=..5MiB/s", Wish::rate, "9"), EndsWith("5MiB/s, such as 5MiB/s"));
  EXPECT_THAT(granted("weight=1..2", Wish::weight, "3"), EndsWith("a whole number from 1 to 2"));
  EXPECT_THAT(granted("weight=10..", Wish::weight, "3"), HasSubstr("of at least 10, such as 10"));
  EXPECT_THAT(granted("weight=1..8", Wish::weight, "9"), EndsWith("a whole number from 1 to 8"));
  EXPECT_THAT(granted("rate=..", Wish::rate, "9"), HasSubstr("expected a rate, such as 50MiB/s"));
}

TEST(Bounds, AMistypedOneIsNamed) {
  EXPECT_EQ(mistake("weight=1..8  deadline=5ms.."), "none");
  EXPECT_EQ(mistake(""), "none");
  EXPECT_THAT(mistake("weigth=1..8"), HasSubstr("\"weigth=1..8\": expected weight=, rate="));
  EXPECT_THAT(mistake("weight"), HasSubstr("\"weight\": expected weight="));
  EXPECT_THAT(mistake("weight=8"), HasSubstr("weight: \"8\" is not a range: expected LEAST..MOST"));
  EXPECT_THAT(mistake("weight=1-8"), HasSubstr("not a range"));
  EXPECT_THAT(mistake("weight="), HasSubstr("not a range"));
  EXPECT_THAT(mistake("weight=8..1"), HasSubstr("weight: 8 is more than 1"));
  EXPECT_THAT(mistake("weight=1..8x"), HasSubstr("weight: \"8x\" is not a whole number"));
  EXPECT_THAT(mistake("weight=1...8"), HasSubstr("weight: \".8\" is not a whole number"));
  EXPECT_THAT(mistake("weight=0..8"), HasSubstr("weight: \"0\" is not possible"));
  EXPECT_THAT(mistake("rate=..500"), HasSubstr("rate: \"500\" needs a unit"));
  EXPECT_THAT(mistake("deadline=5.."), HasSubstr("deadline: \"5\" needs a unit"));
  EXPECT_THAT(mistake("weight=1..8 weight=1..9"), HasSubstr("a bound of the weight already"));
  EXPECT_THAT(mistake("rate=.. total_rate=.."), HasSubstr("a bound of the rate already"));
}

}  // namespace
}  // namespace vpfs::wishes
