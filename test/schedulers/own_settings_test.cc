#include "schedulers/own_settings.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace vpfs {
namespace {

struct One {
  int number = 3;
  bool operator==(const One&) const = default;
};
struct Two {
  std::string text;
  bool operator==(const Two&) const = default;
};

TEST(OwnSettings, HoldOneValueOfEachTypeOrItsDefaults) {
  OwnSettings settings = {One{.number = 5}};
  EXPECT_EQ(std::as_const(settings).of<One>().number, 5);
  EXPECT_EQ(std::as_const(settings).of<Two>().text, "");
  settings.of<Two>().text = "x";
  settings.of<One>().number = 6;
  const OwnSettings copy = settings;
  settings.of<Two>().text = "y";
  EXPECT_EQ(copy.of<One>().number, 6);
  EXPECT_EQ(copy.of<Two>().text, "x") << "a copy is a value of its own";
}

TEST(OwnSettings, AreEqualWhateverTheOrderInWhichTheyCame) {
  const OwnSettings one = {One{}, Two{.text = "x"}};
  EXPECT_TRUE(one == OwnSettings(Two{.text = "x"}, One{}));
  EXPECT_FALSE(one == OwnSettings(Two{.text = "y"}, One{}));
  EXPECT_FALSE(one == OwnSettings(Two{.text = "x"}));
  EXPECT_FALSE(OwnSettings() == OwnSettings(One{.number = 4}));
}

}  // namespace
}  // namespace vpfs
