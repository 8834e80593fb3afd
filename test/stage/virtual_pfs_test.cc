#include "stage/virtual_pfs.h"

#include <gtest/gtest.h>

namespace vpfs::stage {
namespace {

constexpr TimePoint kNow = TimePoint(std::chrono::seconds(100));

TEST(VirtualPfsTable, DefaultIsAlwaysThereAndFirst) {
  VirtualPfsTable table({{.name = "a", .share = {.weight = 3}}}, 10);
  EXPECT_EQ(table[AppId{0}].name, "default");
  EXPECT_EQ(table.find_or_make({"default", "default"}, kNow).app, AppId{0});
  EXPECT_EQ(table.find_or_make({"a", "a"}, kNow).app, AppId{1});
  EXPECT_EQ(table[AppId{1}].share.weight, 3U);
}

TEST(VirtualPfsTable, ATemplateMakesOneForEachNameWithItsShare) {
  VirtualPfsTable table({{.name = "job-{jobid}", .share = {.weight = 5}}}, 10);
  const auto one = table.find_or_make({"job-1", "job-{jobid}"}, kNow);
  const auto two = table.find_or_make({"job-2", "job-{jobid}"}, kNow);
  const auto again = table.find_or_make({"job-1", "job-{jobid}"}, kNow);
  EXPECT_NE(one.app, two.app);
  EXPECT_EQ(again.app, one.app);
  EXPECT_TRUE(one.made && two.made);
  EXPECT_FALSE(again.made);
  EXPECT_EQ(table[two.app].share.weight, 5U);
}

TEST(VirtualPfsTable, BeyondTheLimitNewNamesAreDefault) {
  VirtualPfsTable table({{.name = "job-{jobid}", .share = {}}}, 1);
  EXPECT_NE(table.find_or_make({"job-1", "job-{jobid}"}, kNow).app, AppId{0});
  const std::size_t before = table.size();
  AppId last{};
  for (int i = 2; i < 10; ++i) {
    last = table.find_or_make({"job-" + std::to_string(i), "job-{jobid}"}, kNow).app;
  }
  EXPECT_EQ(last, AppId{0});
  EXPECT_LE(table.size(), before + 1);
  EXPECT_GT(table.refused(), 0U);
}

TEST(VirtualPfsTable, AReloadTellsWhoChangedAndKeepsTheBooks) {
  VirtualPfsTable table({{.name = "a", .share = {.weight = 1}},
                         {.name = "b", .share = {.weight = 2}},
                         {.name = "job-{jobid}", .share = {.weight = 3}}},
                        10);
  const AppId job = table.find_or_make({"job-1", "job-{jobid}"}, kNow).app;
  table[AppId{1}].done_requests = 17;
  const std::vector<VirtualPfsConfig> next = {{.name = "c", .share = {}},
                                              {.name = "b", .share = {.weight = 2}},
                                              {.name = "job-{jobid}", .share = {.weight = 9}}};
  EXPECT_EQ(table.reconfigure(next, 10, kNow), (std::vector{AppId{1}, job, AppId{4}}));
  EXPECT_TRUE(table[AppId{1}].removed);
  EXPECT_FALSE(table[AppId{2}].removed);
  EXPECT_EQ(table[job].share.weight, 9U);
  EXPECT_EQ(table[AppId{4}].name, "c");
  EXPECT_TRUE(table.reconfigure(next, 10, kNow).empty()) << "nothing is new";
  // Who still has the old rules gets the default share.
  EXPECT_EQ(table.find_or_make({"a", "a"}, kNow).app, AppId{0});
  const std::vector<VirtualPfsConfig> back = {{.name = "a", .share = {.weight = 4}}};
  EXPECT_EQ(table.reconfigure(back, 10, kNow), (std::vector{AppId{1}, AppId{2}, job, AppId{4}}));
  EXPECT_FALSE(table[AppId{1}].removed);
  EXPECT_EQ(table[AppId{1}].share.weight, 4U);
  EXPECT_EQ(table[AppId{1}].done_requests, 17U);
}

TEST(VirtualPfsTable, TheTimeToFinishCountsFromWhenItIsLearnt) {
  using std::chrono::seconds;
  const VirtualPfsConfig job = {
      .name = "a", .share = {.finish_bytes = {1000}}, .finish_within = seconds(10)};
  VirtualPfsTable table({job}, 10);
  table.start(kNow);
  EXPECT_EQ(table[AppId{1}].share.finish_by, kNow + seconds(10));
  EXPECT_TRUE(table.reconfigure({job}, 10, kNow + seconds(5)).empty());
  EXPECT_EQ(table[AppId{1}].share.finish_by, kNow + seconds(10)) << "the same promise goes on";
  VirtualPfsConfig longer = job;
  longer.finish_within = seconds(20);
  EXPECT_EQ(table.reconfigure({longer}, 10, kNow + seconds(5)).size(), 1U);
  EXPECT_EQ(table[AppId{1}].share.finish_by, kNow + seconds(25));
}

TEST(VirtualPfsTable, WhatIsDoneOfSoManyBytesIsNotAskedForAgain) {
  using std::chrono::seconds;
  VirtualPfsTable table(
      {{.name = "a", .share = {.finish_bytes = {1000}}, .finish_within = seconds(10)}}, 10);
  table.start(kNow);
  VirtualPfs& pfs = table[AppId{1}];
  EXPECT_EQ(pfs.share_to_come(kNow).finish_bytes.count, 1000U);
  pfs.done_bytes = {400};
  EXPECT_EQ(pfs.share_to_come(kNow + seconds(9)).finish_bytes.count, 600U);
  EXPECT_EQ(pfs.share_to_come(kNow + seconds(10)).finish_bytes.count, 0U) << "its time is over";
  pfs.done_bytes = {1200};
  EXPECT_EQ(pfs.share_to_come(kNow + seconds(1)).finish_bytes.count, 0U);
}

TEST(ReadYield, FollowsWhatReadsHaveGiven) {
  constexpr Bytes kAsked = {10 * kMiB};
  ReadYield yield;
  EXPECT_EQ(yield.expected(kAsked), kAsked);
  for (int i = 0; i < 60; ++i) yield.learn(kAsked, {4096});
  EXPECT_LE(yield.expected(kAsked), Bytes{16 * kKiB});
  for (int i = 0; i < 100; ++i) yield.learn(kAsked, kAsked);
  EXPECT_EQ(yield.expected(kAsked), kAsked);
}

}  // namespace
}  // namespace vpfs::stage
