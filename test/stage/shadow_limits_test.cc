#include "stage/shadow_limits.h"

#include <string>

#include <gtest/gtest.h>

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kRate = 1000;  // bytes each second, and the burst

class ShadowLimitsTest : public ::testing::Test {
 protected:
  ShadowLimitsTest() {
    config_.rules = {{.name = "trial", .mode = RuleMode::shadow, .virtual_pfs = "job-{jobid}"}};
    config_.virtual_pfs = {
        {.name = "job-{jobid}", .share = {.rate = {kRate}, .burst = {kRate}}},
        {.name = "other", .share = {}},
    };
    take_on();
  }
  void take_on() {
    rules_.reconfigure(config_.rules);
    shadows_.reconfigure(config_, rules_, now_);
  }
  Share& share() { return config_.virtual_pfs.front().share; }
  ShadowRef job(int number) { return shadows_.find("trial", name_of(number), now_); }
  static std::string name_of(int number) { return "job-" + std::to_string(number); }
  void arrive(ShadowRef shadow, std::uint64_t size) { (void)shadows_.arrive(shadow, {size}, now_); }
  ShadowLimits::Report report() const { return shadows_.report("trial", now_).value(); }
  // As a stage and its owner do.
  void retire_idle() {
    shadows_.find_idle(shadows_.size(), 60s, now_);
    while (shadows_.has_idle()) shadows_.retire_one(now_);
  }

  TimePoint now_ = TimePoint(100s);
  Config config_;
  RuleRows rules_;
  ShadowLimits shadows_;
};

TEST_F(ShadowLimitsTest, ReportsWhatWouldNotHavePassedAtOnce) {
  const ShadowRef shadow = job(1);
  arrive(shadow, 600);
  arrive(shadow, 400);
  EXPECT_EQ(report().would_hold.requests, 0U) << "the burst passes";
  arrive(shadow, 500);  // its tokens come in half a second
  arrive(shadow, 100);
  now_ += 10s;
  EXPECT_EQ(report().seen.requests, 4U);
  EXPECT_EQ(report().seen.bytes, 1600U);
  EXPECT_EQ(report().would_hold.requests, 2U);
  EXPECT_EQ(report().would_hold.bytes, 600U);
  EXPECT_EQ(report().held, 600ms);
}

TEST_F(ShadowLimitsTest, TheTimeUpToNowCountsOnce) {
  const ShadowRef shadow = job(1);
  arrive(shadow, kRate);
  arrive(shadow, 300);
  arrive(shadow, 200);
  EXPECT_EQ(report().held, 0ms) << "it has just begun";
  now_ += 100ms;
  EXPECT_EQ(report().held, 100ms);
  now_ += 1s;
  EXPECT_EQ(report().held, 500ms);
  now_ += 1s;
  EXPECT_EQ(report().held, 500ms);
}

TEST_F(ShadowLimitsTest, TheDebtIsOneBurstAtMost) {
  const ShadowRef shadow = job(1);
  for (int i = 0; i < 1000; ++i) arrive(shadow, kRate);
  EXPECT_EQ(report().would_hold.requests, 999U);
  now_ += 2s;
  arrive(shadow, kRate);
  EXPECT_EQ(report().would_hold.requests, 999U) << "no old debt after two bursts' time";
}

TEST_F(ShadowLimitsTest, TrafficBelowTheRateIsNeverReported) {
  const ShadowRef shadow = job(1);
  for (int i = 0; i < 1000; ++i, now_ += 100ms) arrive(shadow, 100);
  EXPECT_EQ(report().seen.requests, 1000U);
  EXPECT_EQ(report().would_hold.requests, 0U);
  EXPECT_EQ(report().held, 0ms);
}

TEST_F(ShadowLimitsTest, OperationsAreALimitOfTheirOwn) {
  share() = {.operations = 2, .burst_operations = 2};
  take_on();
  const ShadowRef shadow = job(1);
  for (int i = 0; i < 3; ++i) arrive(shadow, 1 << 20);
  now_ += 10s;
  EXPECT_EQ(report().would_hold.requests, 1U);
  EXPECT_EQ(report().held, 500ms);
}

TEST_F(ShadowLimitsTest, EachVirtualPfsHasBucketsOfItsOwnAndTheRuleTheirSum) {
  arrive(job(1), kRate);
  arrive(job(2), kRate);
  EXPECT_EQ(report().would_hold.requests, 0U);
  arrive(job(2), 100);
  EXPECT_EQ(shadows_.report("trial", name_of(1), now_)->would_hold.requests, 0U);
  EXPECT_EQ(shadows_.report("trial", name_of(2), now_)->would_hold.requests, 1U);
  EXPECT_FALSE(shadows_.report("trial", name_of(3), now_));
  EXPECT_EQ(report().would_hold.requests, 1U);
  EXPECT_EQ(report().names, 2U);
}

TEST_F(ShadowLimitsTest, ARuleThatStaysKeepsItsCountsAndTakesItsNewLimits) {
  const ShadowRef shadow = job(1);
  arrive(shadow, kRate);
  arrive(shadow, 100);
  share().rate = {1'000'000};
  share().burst = {1'000'000};
  take_on();
  EXPECT_EQ(job(1), shadow);
  now_ += 1s;
  arrive(shadow, 500'000);
  EXPECT_EQ(report().seen.requests, 3U);
  EXPECT_EQ(report().would_hold.requests, 1U);
}

TEST_F(ShadowLimitsTest, ARuleThatGoesFreesItsRowsAndStaleReferencesCountForNoRule) {
  const ShadowRef old = job(1);
  config_.rules.front().mode = RuleMode::enforce;
  take_on();
  EXPECT_FALSE(shadows_.report("trial", now_));
  EXPECT_EQ(job(1), ShadowRef{}) << "no shadow rule has the name";
  config_.rules.front().mode = RuleMode::shadow;
  take_on();
  const ShadowRef again = job(2);
  EXPECT_EQ(again.row, old.row);
  EXPECT_EQ(shadows_.arrive(old, {kRate}, now_), RuleRef{});
  EXPECT_EQ(report().seen.requests, 0U);
  EXPECT_EQ(shadows_.arrive(again, {1}, now_), rules_.find("trial"));
}

TEST_F(ShadowLimitsTest, RowsAreBoundedAndFurtherNamesAreOnlyCounted) {
  constexpr int kNames = static_cast<int>(ShadowLimits::kMostRows) + 50;
  for (int i = 0; i < kNames; ++i) {
    const ShadowRef shadow = job(i);
    arrive(shadow, kRate);
    arrive(shadow, 1);
  }
  EXPECT_EQ(shadows_.size(), ShadowLimits::kMostRows + 1);
  EXPECT_EQ(report().seen.requests, 2U * kNames);
  EXPECT_EQ(report().would_hold.requests, ShadowLimits::kMostRows);
  EXPECT_EQ(report().unmeasured.requests, 100U);
}

TEST_F(ShadowLimitsTest, AnIdleRowIsRetiredAndItsCountsStay) {
  for (int i = 0; i < 5000; ++i) {
    const ShadowRef shadow = job(i);
    arrive(shadow, kRate);
    arrive(shadow, 1000);
    now_ += 1s;
    if (i % 100 == 0) retire_idle();
  }
  EXPECT_LE(shadows_.size(), 200U);
  EXPECT_EQ(report().seen.requests, 10'000U);
  EXPECT_EQ(report().would_hold.requests, 5000U);
  EXPECT_EQ(report().held, 5000s);
  EXPECT_EQ(report().unmeasured.requests, 0U);
}

TEST_F(ShadowLimitsTest, ARowThatIsUsedBeforeAllHaveForgottenItStays) {
  const ShadowRef used = job(1);
  const ShadowRef found = job(2);
  const ShadowRef gone = job(3);
  now_ += 61s;
  shadows_.find_idle(100, 60s, now_);
  arrive(used, 1);
  EXPECT_EQ(job(2), found);
  while (shadows_.has_idle()) shadows_.retire_one(now_);
  EXPECT_EQ(shadows_.arrive(used, {1}, now_), rules_.find("trial"));
  EXPECT_EQ(job(2), found);
  EXPECT_EQ(shadows_.arrive(gone, {1}, now_), RuleRef{});
}

TEST_F(ShadowLimitsTest, ARuleMayGoWhileItsRowsWaitToBeRetired) {
  (void)job(1);
  now_ += 61s;
  shadows_.find_idle(100, 60s, now_);
  config_.rules.clear();
  take_on();
  config_.rules = {{.name = "next", .mode = RuleMode::shadow, .virtual_pfs = "job-{jobid}"}};
  take_on();
  const ShadowRef next = shadows_.find("next", "job-1", now_);
  while (shadows_.has_idle()) shadows_.retire_one(now_);
  EXPECT_EQ(shadows_.arrive(next, {1}, now_), rules_.find("next"));
}

TEST_F(ShadowLimitsTest, TheStageMakesNoVirtualPfsThatOnlyShadowRulesName) {
  const auto made = [&] {
    std::vector<std::string> names;
    for (const VirtualPfsConfig& each : enforced_virtual_pfs(config_)) names.push_back(each.name);
    return names;
  };
  EXPECT_EQ(made(), (std::vector<std::string>{"other"}));
  config_.rules.push_back({.name = "real", .virtual_pfs = "job-{jobid}"});
  EXPECT_EQ(made(), (std::vector<std::string>{"job-{jobid}", "other"}));
}

}  // namespace
}  // namespace vpfs::stage
