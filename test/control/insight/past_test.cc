#include "control/insight/past.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "test/stage/history/activities.h"

namespace vpfs::insight {
namespace {

using stage::HistoryReading;
using stage::Measure;
using stage::Measures;
using std::chrono::seconds;

constexpr std::uint64_t kSecond = 1'000'000;  // microseconds

class PastTest : public ::testing::Test {
 protected:
  static HistoryReading of(std::uint32_t app, const std::string& name, const Share& share) {
    HistoryReading made;
    made.id = {.app = AppId{app}, .generation = 0};
    auto declared = std::make_shared<stage::VirtualPfsConfig>();
    declared->name = name;
    declared->share = share;
    auto info = std::make_shared<stage::VirtualPfsInfo>();
    info->name = name;
    info->declared = std::move(declared);
    made.info = std::move(info);
    made.rule = std::make_shared<const std::string>("rule-" + name);
    return made;
  }
  static Measures sent(std::uint64_t bytes) {
    Measures made;
    made.of(Measure::read_bytes) = made.of(Measure::cost) = bytes;
    made.of(Measure::operations) = 1;
    return made;
  }
  static Measures held(Measures what, Measure why) {
    what.of(why) = kSecond;
    return what;
  }
  void run(int count, const Measures& of_a, const Measures& of_b) {
    for (int second = 0; second < count; ++second) {
      for (const auto& [who, what] : {std::pair(&a_, of_a), std::pair(&b_, of_b)}) {
        if (what.of(Measure::cost) > 0 || what.of(Measure::queued) > 0) {
          activities_.does(*who, what);
        }
      }
      activities_.end_second(history_);
    }
  }
  Past past(seconds back) { return past_of(history_, activities_.now() - back, activities_.now()); }
  static const PastOf& find(const Past& past, const std::string& name) {
    for (const PastOf& each : past.of) {
      if (each.name == name) return each;
    }
    throw std::runtime_error(name + " is missing");
  }

  HistoryReading a_ = of(1, "a", {.weight = 2});
  HistoryReading b_ = of(2, "b", {.weight = 1});
  stage::Activities activities_;
  stage::History history_;
};

TEST_F(PastTest, SaysWhatEachDidAndForHowLong) {
  run(10, sent(1000), sent(500));
  run(10, {}, sent(500));
  const Past past = this->past(seconds(60));
  EXPECT_EQ(past.length, seconds(20));
  EXPECT_EQ(past.cost, 20'000U);
  ASSERT_EQ(past.of.size(), 2U);
  const PastOf& a = find(past, "a");
  EXPECT_EQ(a.sums.of(Measure::read_bytes), 10'000U);
  EXPECT_EQ(a.active, seconds(10));
  EXPECT_EQ(a.share.weight, 2U);
  EXPECT_EQ(a.rules, std::vector<std::string>{"rule-a"});
  EXPECT_EQ(a.last, activities_.now() - seconds(10));
}

TEST_F(PastTest, NoneIsEntitledToMoreThanItWants) {
  run(20, sent(1000), sent(500));
  const Past past = this->past(seconds(60));
  for (const PastOf& each : past.of) {
    EXPECT_EQ(each.entitled, each.sums.of(Measure::cost)) << each.name;
    EXPECT_EQ(each.wanted, each.entitled) << each.name;
    EXPECT_EQ(each.wanted_all, Duration::zero()) << each.name;
  }
}

TEST_F(PastTest, OneThatOthersHoldIsEntitledToItsWeightsPart) {
  // a has half of what the weights say.
  run(20, held(sent(300), Measure::held_by_share), held(sent(600), Measure::held_by_share));
  const Past past = this->past(seconds(60));
  EXPECT_EQ(find(past, "a").entitled, 12'000U);
  EXPECT_EQ(find(past, "b").entitled, 6'000U);
  EXPECT_EQ(find(past, "a").wanted, 18'000U);
  EXPECT_EQ(find(past, "a").wanted_all, seconds(20));
}

TEST_F(PastTest, WhatIsNotWantedIsForTheOthers) {
  run(20, sent(100), held(sent(800), Measure::held_by_depth));
  const Past past = this->past(seconds(60));
  EXPECT_EQ(find(past, "a").entitled, 2'000U);
  EXPECT_EQ(find(past, "b").entitled, 16'000U);
}

TEST_F(PastTest, OneThatItsLimitHoldsIsEntitledToThatAlone) {
  run(20, held(sent(100), Measure::held_by_limit), held(sent(800), Measure::held_by_share));
  const Past past = this->past(seconds(60));
  EXPECT_EQ(find(past, "a").entitled, 2'000U);
  EXPECT_EQ(find(past, "a").wanted, 2'000U);
}

TEST_F(PastTest, AMinimumGoesBeforeTheWeights) {
  b_ = of(2, "b", {.weight = 1, .min = {400}});
  run(20, held(sent(600), Measure::held_by_share), held(sent(300), Measure::held_by_share));
  const Past past = this->past(seconds(60));
  EXPECT_EQ(find(past, "b").entitled, 8'000U);
  EXPECT_EQ(find(past, "a").entitled, 10'000U);
}

TEST_F(PastTest, AShareThatChangedIsOfTheSameVirtualPfs) {
  run(10, sent(100), {});
  a_ = of(1, "a", {.weight = 5});
  run(10, sent(200), {});
  const Past past = this->past(seconds(60));
  ASSERT_EQ(past.of.size(), 1U);
  EXPECT_EQ(past.of[0].sums.of(Measure::cost), 3000U);
  EXPECT_EQ(past.of[0].share.weight, 5U);
  EXPECT_EQ(past.of[0].active, seconds(20));
}

// Ten seconds of it are one span, longer ago.
TEST_F(PastTest, OneThatTwoRulesSendToIsActiveOnce) {
  for (int second = 0; second < 400; ++second) {
    a_.rule = std::make_shared<const std::string>(second % 2 == 0 ? "one" : "other");
    run(1, sent(100), {});
  }
  const Past past = past_of(history_, activities_.now() - seconds(400), activities_.now());
  ASSERT_EQ(past.of.size(), 1U);
  EXPECT_THAT(past.of[0].rules, ::testing::UnorderedElementsAre("one", "other"));
  EXPECT_EQ(past.of[0].sums.of(Measure::cost), 40'000U);
  EXPECT_EQ(past.of[0].active, past.length);
}

TEST_F(PastTest, OneThatWasOfTwoJobsHasNoJob) {
  a_.jobid = "4711";
  run(10, sent(100), {});
  EXPECT_EQ(find(past(seconds(60)), "a").jobid, "4711");
  a_.jobid = "4712";
  run(10, sent(100), {});
  EXPECT_EQ(find(past(seconds(60)), "a").jobid, "");
}

TEST_F(PastTest, HasTheVersionsOfTheRules) {
  run(5, sent(1), {});
  activities_.set_rules(4);
  run(5, sent(1), {});
  const Past past = this->past(seconds(60));
  EXPECT_EQ(past.first_rules, 1U);
  EXPECT_EQ(past.last_rules, 4U);
}

TEST_F(PastTest, OthersAreNotEntitledToWhatTheBusiestGot) {
  for (int second = 0; second < 10; ++second) {
    activities_.does(a_, held(sent(4000), Measure::held_by_share));
    for (std::uint32_t app = 10; app < 210; ++app) {
      activities_.moves(activities_.reading(app), 10);
    }
    activities_.end_second(history_);
  }
  const Past past = this->past(seconds(60));
  EXPECT_GT(past.others.of(Measure::cost), 0U);
  EXPECT_EQ(past.cost, 60'000U);
  EXPECT_NEAR(static_cast<double>(find(past, "a").entitled), 40'000, 200);
}

TEST_F(PastTest, AnEmptyTimeHasNothing) {
  run(5, sent(1), {});
  const Past past =
      past_of(history_, activities_.now() + seconds(10), activities_.now() + seconds(20));
  EXPECT_TRUE(past.of.empty());
  EXPECT_EQ(past.length, Duration::zero());
}

}  // namespace
}  // namespace vpfs::insight
