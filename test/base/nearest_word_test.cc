#include "base/nearest_word.h"

#include <gtest/gtest.h>

namespace vpfs {
namespace {

const std::vector<std::string> kWords = {"rule", "job", "status", "stat", "top"};

TEST(NearestWord, IsTheOneWithTheFewestChanges) {
  EXPECT_EQ(nearest_word("ruel", kWords), "rule");
  EXPECT_EQ(nearest_word("rules", kWords), "rule");
  EXPECT_EQ(nearest_word("statu", kWords), "status");
}

TEST(NearestWord, IsNothingWhenNoneIsNear) {
  EXPECT_EQ(nearest_word("nrs_tbf_rule", kWords), std::nullopt);
  EXPECT_EQ(nearest_word("", kWords), std::nullopt);
  EXPECT_EQ(nearest_word("xyz", {}), std::nullopt);
}

TEST(NearestWord, DoesNotReplaceEveryLetter) {
  EXPECT_EQ(nearest_word("abc", kWords), std::nullopt);
}

}  // namespace
}  // namespace vpfs
