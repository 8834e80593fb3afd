#include "stage/rule_rows.h"

#include <gtest/gtest.h>

#include "test/stage/now.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;

std::vector<RuleConfig> named(const std::vector<std::string>& names) {
  std::vector<RuleConfig> rules;
  for (const std::string& name : names) rules.push_back({.name = name});
  return rules;
}

TEST(RuleRows, DefaultIsFirstAndAlwaysThere) {
  RuleRows rows;
  rows.hit(RuleRows::kDefault, kNow);
  rows.reconfigure({});
  ASSERT_NE(rows.row(RuleRows::kDefault), nullptr);
  EXPECT_EQ(*rows.row(RuleRows::kDefault)->name, "default");
  EXPECT_EQ(rows.row(RuleRows::kDefault)->hits, 1U);
  EXPECT_EQ(rows.find("default"), RuleRows::kDefault);
}

TEST(RuleRows, ARowStaysAsLongAsThereIsARuleOfItsName) {
  RuleRows rows;
  rows.reconfigure(named({"a", "b"}));
  const RuleRef a = rows.find("a");
  rows.hit(a, kNow);
  rows.made(a);
  rows.reconfigure(named({"c", "b", "a"}));
  EXPECT_EQ(rows.find("a"), a);
  rows.hit(a, kNow + 5s);
  EXPECT_EQ(rows.row(a)->hits, 2U);
  EXPECT_EQ(rows.row(a)->made, 1U);
  EXPECT_EQ(rows.row(a)->last_hit, kNow + 5s);
  EXPECT_EQ(rows.row(rows.find("b"))->hits, 0U);
}

TEST(RuleRows, AStaleReferenceCountsForNoRule) {
  RuleRows rows;
  rows.reconfigure(named({"a"}));
  const RuleRef old = rows.find("a");
  rows.hit(old, kNow);
  rows.reconfigure(named({"b"}));
  const RuleRef b = rows.find("b");
  EXPECT_EQ(b.row, old.row) << "the number is used again";
  rows.hit(old, kNow);
  rows.made(old);
  EXPECT_EQ(rows.row(old), nullptr);
  EXPECT_EQ(rows.row(b)->hits + rows.row(b)->made, 0U);
  rows.reconfigure(named({"a"}));
  EXPECT_NE(rows.find("a"), old);
  EXPECT_EQ(rows.row(rows.find("a"))->hits, 0U) << "another rule of that name";
}

TEST(RuleRows, AnUnknownNameHasNoRow) {
  RuleRows rows;
  EXPECT_EQ(rows.find("a"), RuleRef{});
  rows.hit({}, kNow);
  rows.hit({.row = 7, .generation = 0}, kNow);
  EXPECT_EQ(rows.row(RuleRows::kDefault)->hits, 0U);
}

TEST(RuleRows, ManyReloadsTakeNoMoreRowsThanThereAreRulesAtATime) {
  RuleRows rows;
  for (int i = 0; i < 1000; ++i) {
    rows.reconfigure(named({"a" + std::to_string(i), "b" + std::to_string(i), "stays"}));
  }
  EXPECT_LE(rows.size(), 1U + 3 + 2);
}

}  // namespace
}  // namespace vpfs::stage
