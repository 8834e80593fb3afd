#include "tools/vpfsctl/top/top_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::ctl {
namespace {

constexpr std::uint64_t kSecond = 1'000'000;

control::StatsReply sample(std::uint64_t seconds, std::int64_t started = 1) {
  control::StatsReply reply;
  reply.set_at_us(1000 * kSecond + seconds * kSecond);
  reply.set_started_at(started);
  return reply;
}

control::VirtualPfs* add(control::StatsReply& reply, const std::string& name, std::uint64_t bytes,
                         std::uint32_t weight = 1, std::uint32_t id = 0) {
  auto* each = reply.add_virtual_pfs();
  each->set_id(id != 0 ? id : static_cast<std::uint32_t>(reply.virtual_pfs_size()));
  each->set_generation(1);
  each->set_name(name);
  each->set_weight(weight);
  each->mutable_read()->set_bytes(bytes);
  each->mutable_read()->set_requests(bytes / 10);
  each->set_cost_done(bytes);
  return each;
}

TopModel model_of(const std::vector<control::StatsReply>& replies) {
  TopModel model({"s0"});
  for (const auto& reply : replies) model.add(0, reply);
  return model;
}

control::StatsReply with_a(std::uint64_t seconds, std::uint64_t bytes, std::int64_t started = 1) {
  control::StatsReply reply = sample(seconds, started);
  add(reply, "a", bytes);
  return reply;
}

TEST(TopModel, ARateNeedsTwoSamples) {
  const auto rows = model_of({with_a(0, 500)}).rows(false);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_FALSE(rows[0].now.bytes);
  EXPECT_FALSE(rows[0].ten.operations);
}

TEST(TopModel, RatesAreOfTheLastSecondAndTheLastTen) {
  TopModel model({"s0"});
  std::uint64_t bytes = 0;
  for (std::uint64_t second = 0; second <= 20; ++second) {
    model.add(0, with_a(second, bytes));
    bytes += second < 15 ? 100 : 1000;
  }
  const auto rows = model.rows(false);
  EXPECT_DOUBLE_EQ(*rows[0].now.bytes, 1000);
  EXPECT_DOUBLE_EQ(*rows[0].now.operations, 100);
  EXPECT_DOUBLE_EQ(*rows[0].ten.bytes, (5 * 100 + 5 * 1000) / 10.0);
}

TEST(TopModel, APeriodLongerThanASecondIsAnAverageOverIt) {
  const auto rows = model_of({with_a(0, 0), with_a(5, 5000)}).rows(false);
  EXPECT_DOUBLE_EQ(*rows[0].now.bytes, 1000);
}

TEST(TopModel, ARestartGivesNoRateUntilTheNextSample) {
  auto rows = model_of({with_a(0, 0), with_a(1, 900), with_a(2, 1'000'000, 2)}).rows(false);
  EXPECT_FALSE(rows[0].now.bytes) << "counters of another start";
  rows = model_of({with_a(0, 900), with_a(1, 1000, 2), with_a(2, 1100, 2)}).rows(false);
  EXPECT_DOUBLE_EQ(*rows[0].now.bytes, 100);
}

TEST(TopModel, CountersThatGoBackGiveNoRate) {
  const auto rows = model_of({with_a(0, 1000), with_a(1, 10)}).rows(false);
  EXPECT_FALSE(rows[0].now.bytes);
}

TEST(TopModel, AClockThatGoesBackIsAnotherStart) {
  const auto rows = model_of({with_a(10, 0), with_a(9, 1000), with_a(10, 1010)}).rows(false);
  EXPECT_DOUBLE_EQ(*rows[0].now.bytes, 10);
}

TEST(TopModel, ANewVirtualPfsHasNoRateYet) {
  control::StatsReply second = with_a(1, 100);
  add(second, "b", 1'000'000);
  const auto rows = model_of({with_a(0, 0), second}).rows(false);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_DOUBLE_EQ(*rows[0].now.bytes, 100);
  EXPECT_FALSE(rows[1].now.bytes);
}

TEST(TopModel, ANumberThatIsUsedAgainIsAnotherVirtualPfs) {
  control::StatsReply again = sample(1);
  add(again, "b", 1'000'000)->set_generation(2);
  const auto rows = model_of({with_a(0, 0), again}).rows(false);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_FALSE(rows[0].now.bytes);
}

// Costs are twice the bytes.
TEST(TopModel, WhatOneIsEntitledToIsInTheUnitOfWhatItGot) {
  control::StatsReply first = sample(0);
  control::StatsReply second = sample(1);
  for (auto* each : {add(first, "a", 100), add(second, "a", 600)}) {
    each->set_cost_done(2 * each->read().bytes());
  }
  second.mutable_virtual_pfs(0)->set_entitled_cost(1400);
  const auto rows = model_of({first, second}).rows(false);
  EXPECT_DOUBLE_EQ(*rows[0].now.bytes, 500);
  EXPECT_DOUBLE_EQ(*rows[0].entitled, 700);
}

TEST(TopModel, OneThatIsStarvedIsEntitledByWhatItsBytesCostBefore) {
  control::StatsReply first = with_a(0, 100);
  control::StatsReply second = with_a(1, 100);
  for (auto* reply : {&first, &second}) reply->mutable_virtual_pfs(0)->set_cost_done(400);
  second.mutable_virtual_pfs(0)->set_entitled_cost(1400);
  EXPECT_DOUBLE_EQ(*model_of({first, second}).rows(false)[0].entitled, 350);
}

TEST(TopModel, WeightsThatDoNothingAreToldSoOfThoseThatAreActive) {
  control::StatsReply first = with_a(0, 0);
  control::StatsReply second = with_a(1, 100);
  second.set_not_busy(true);
  add(first, "idle", 0);
  add(second, "idle", 0);
  auto rows = model_of({first, second}).rows(false);
  EXPECT_TRUE(rows[0].not_busy);
  EXPECT_FALSE(rows[0].entitled);
  EXPECT_FALSE(rows[1].not_busy);
  second.mutable_virtual_pfs(0)->set_entitled_cost(100);
  rows = model_of({first, second}).rows(false);
  EXPECT_FALSE(rows[0].not_busy) << "its limit held it";
  EXPECT_DOUBLE_EQ(*rows[0].entitled, 100);
}

// A user who sees own jobs only has the stage's word for it.
TEST(TopModel, OthersThatAreNotSeenDoNotChangeIt) {
  control::StatsReply second = with_a(1, 100);
  second.set_partial(true);
  second.mutable_virtual_pfs(0)->set_entitled_cost(200);
  EXPECT_DOUBLE_EQ(*model_of({with_a(0, 0), second}).rows(false)[0].entitled, 200);
}

TEST(TopModel, TheOldestRequestsReasonGoesBeforeWhatHeldMost) {
  control::StatsReply second = with_a(1, 10);
  auto* each = second.mutable_virtual_pfs(0);
  each->set_held_limit_us(10);
  each->set_held_share_us(500);
  auto rows = model_of({with_a(0, 0), second}).rows(false);
  EXPECT_EQ(rows[0].held_by, "share");
  each->mutable_wait()->set_reason("no tokens left");
  each->mutable_wait()->set_since_us(1500);
  rows = model_of({with_a(0, 0), second}).rows(false);
  EXPECT_EQ(rows[0].held_by, "no tokens left");
  EXPECT_EQ(rows[0].wait_us, 1500U);
}

TEST(TopModel, ARowThatKeepsNoQueueIsToldSoWhateverItWaitsFor) {
  control::StatsReply reply = with_a(1, 10);
  auto* each = reply.mutable_virtual_pfs(0);
  each->mutable_wait()->set_reason("is the next to be sent");
  each->mutable_wait()->set_since_us(1500);
  EXPECT_EQ(model_of({reply}).rows(false)[0].held_by, "is the next to be sent");
  each->set_keeps_no_queue(true);
  EXPECT_EQ(model_of({reply}).rows(false)[0].held_by, "keeps no queue");
}

TEST(TopModel, OneThatKeepsNoQueueAtOneProxyIsToldSoInTheRowOfAll) {
  for (const bool is_first : {true, false}) {
    TopModel model({"s0", "s1"});
    control::StatsReply without = with_a(1, 10);
    without.mutable_virtual_pfs(0)->set_keeps_no_queue(true);
    control::StatsReply waits = with_a(1, 10);
    waits.mutable_virtual_pfs(0)->mutable_wait()->set_reason("its rate limit");
    waits.mutable_virtual_pfs(0)->mutable_wait()->set_since_us(1500);
    model.add(is_first ? 0 : 1, without);
    model.add(is_first ? 1 : 0, waits);
    const auto rows = model.rows(false);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].held_by, "keeps no queue");
    EXPECT_EQ(rows[0].wait_us, 1500U);
  }
}

TEST(TopModel, TheLowerLimitCounts) {
  control::StatsReply reply = with_a(0, 0);
  auto* each = reply.mutable_virtual_pfs(0);
  each->set_rate(100);
  EXPECT_EQ(model_of({reply}).rows(false)[0].limit_bytes, 100U);
  each->set_allocated_rate(60);
  EXPECT_EQ(model_of({reply}).rows(false)[0].limit_bytes, 60U);
  each->set_allocated_rate(600);
  each->set_allocated_operations(7);
  EXPECT_EQ(model_of({reply}).rows(false)[0].limit_bytes, 100U);
  each->set_allocated_metadata_operations(5);
  EXPECT_EQ(model_of({reply}).rows(false)[0].limit_operations, 7U);
  EXPECT_EQ(model_of({reply}).rows(false)[0].limit_metadata, 5U);
}

// "a" is entitled to 3/4 at s0, and s1 is not busy with it, which does three times as much.
TopModel two_proxies() {
  TopModel model({"s0", "s1"});
  for (const std::uint64_t second : {0U, 1U}) {
    control::StatsReply s0 = sample(second);
    add(s0, "a", 75 * second, 3)->set_entitled_cost(80);
    add(s0, "b", 25 * second, 1)->set_entitled_cost(20);
    control::StatsReply s1 = sample(500 + second);
    add(s1, "a", 300 * second, 1, 9);
    s1.set_not_busy(true);
    model.add(0, s0);
    model.add(1, s1);
  }
  return model;
}

TEST(TopModel, ProxiesAreSummedByName) {
  const auto rows = two_proxies().rows(false);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "a");
  EXPECT_EQ(rows[0].proxy, "");
  EXPECT_DOUBLE_EQ(*rows[0].now.bytes, 375);
  EXPECT_DOUBLE_EQ(*rows[0].entitled, 80 + 300);
  EXPECT_FALSE(rows[0].not_busy) << "s0 is busy";
  EXPECT_DOUBLE_EQ(*rows[1].entitled, 20);
  EXPECT_DOUBLE_EQ(*rows[1].now.bytes, 25);
}

TEST(TopModel, EachProxyHasRowsOfItsOwnIfAsked) {
  const auto rows = two_proxies().rows(true);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].proxy, "s0");
  EXPECT_EQ(rows[1].proxy, "s1");
  EXPECT_DOUBLE_EQ(*rows[1].now.bytes, 300);
  EXPECT_TRUE(rows[1].not_busy);
  EXPECT_DOUBLE_EQ(*rows[0].entitled, 80);
}

TEST(TopModel, AProxyThatVanishesStaysWithAMark) {
  TopModel model = two_proxies();
  model.lost(1, "no answer");
  const auto rows = model.rows(true);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_FALSE(rows[0].is_silent);
  EXPECT_TRUE(rows[1].is_silent);
  EXPECT_FALSE(rows[1].now.bytes);
  EXPECT_FALSE(model.rows(false)[0].is_silent) << "one of its proxies still answers";
  EXPECT_DOUBLE_EQ(*model.rows(false)[0].now.bytes, 75);
  EXPECT_EQ(model.proxies()[1].problem, "no answer");
  EXPECT_EQ(model.proxies()[1].bytes, 0);
}

TEST(TopModel, AProxyThatComesBackGoesOn) {
  TopModel model = model_of({with_a(0, 0), with_a(1, 100)});
  model.lost(0, "no answer");
  model.add(0, with_a(3, 300));
  const auto rows = model.rows(false);
  EXPECT_FALSE(rows[0].is_silent);
  EXPECT_DOUBLE_EQ(*rows[0].now.bytes, 100);
  EXPECT_TRUE(model.proxies()[0].answers);
}

// `top -d 1min` asks a little less often than once a minute.
TEST(TopModel, ThereAreRatesWithTheLongestPeriod) {
  const auto rows = model_of({with_a(0, 0), with_a(61, 6'100)}).rows(false);
  ASSERT_TRUE(rows[0].now.bytes);
  EXPECT_DOUBLE_EQ(*rows[0].now.bytes, 100);
}

TEST(TopModel, AfterALongSilenceRatesBeginAnew) {
  const auto rows = model_of({with_a(0, 0), with_a(3600, 1'000'000)}).rows(false);
  EXPECT_FALSE(rows[0].now.bytes);
}

}  // namespace
}  // namespace vpfs::ctl
