#include "schedulers/start_tag.h"

#include <random>

#include <gtest/gtest.h>

#include "base/wide.h"

namespace vpfs {
namespace {

TEST(StartTag, AmountsOfManyRequestsSumToTheWhole) {
  std::mt19937_64 random(7);
  for (const std::uint32_t weight : {1U, 3U, 7U, 999'983U, Share::kMaxWeight}) {
    StartTag start(weight);
    Wide cost = 0;
    Wide moved = 0;
    for (int i = 0; i < 1000; ++i) {
      const Cost one = 1 + random() % kMaxCost;
      cost += one;
      moved += start.next_amount(one);
    }
    EXPECT_TRUE(moved == (cost << StartTag::kFractionBits) / weight) << weight;
  }
}

TEST(StartTag, OneByteAtTheLargestWeightIsNotFree) {
  EXPECT_GT(StartTag(Share::kMaxWeight).amount_of(1), 0U);
}

TEST(StartTag, WhatIsGivenBackBelowTheVirtualTimeIsCreditForTheNextRequests) {
  StartTag start;
  start.tag = 1000;
  start.give_back(300, 900, true);
  EXPECT_EQ(start.tag, 900U);
  EXPECT_EQ(start.credit, 200U);
  start.tag += 150;
  start.use_credit(150);
  EXPECT_EQ(start.tag, 900U);
  EXPECT_EQ(start.credit, 50U);
  start.end_backlog();
  EXPECT_EQ(start.tag, 850U);
  EXPECT_EQ(start.credit, 0U);
}

TEST(StartTag, WithNothingQueuedAllIsGivenBackAtOnce) {
  StartTag start;
  start.tag = 1000;
  start.give_back(300, 900, false);
  EXPECT_EQ(start.tag, 700U);
  EXPECT_EQ(start.credit, 0U);
  start.give_back(800, 900, false);
  EXPECT_EQ(start.tag, 0U);
}

TEST(StartTag, CreditSaturates) {
  StartTag start;
  for (int i = 0; i < 20; ++i) start.give_back(StartTag::Tag{1} << 60, 0, true);
  EXPECT_EQ(start.credit, ~StartTag::Tag{0});
}

}  // namespace
}  // namespace vpfs
