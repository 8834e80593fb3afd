#include "control/allocation/totals_watch.h"

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::allocation {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Why = TotalsWatch::Why;

// What a job does on a stage in each second: its cost, and of which parts of the second it is in
// flight, so while the stage is crowded, so without a queue, and held by a limit.
struct Doing {
  std::uint32_t job = 0;
  std::uint32_t stage = 0;
  Cost cost = 0;
  double present = 1;
  double crowded = 1;
  double without_queue = 0;
  double limited = 0;
  std::uint32_t weight = 1;
};

class TotalsWatchTest : public ::testing::Test {
 protected:
  static constexpr std::array<std::string_view, 3> kJobs = {"a", "b", "c"};
  static constexpr std::array<std::string_view, 3> kStages = {"s0", "s1", "s2"};

  static Microseconds part(double of_second) {
    return Microseconds(static_cast<std::uint64_t>(of_second * 1e6));
  }
  // `doing` ascends by (job, stage).
  void run(const std::vector<Doing>& doing, Duration length = 2 * TotalsWatch::kSpan) {
    if (pairs_.size() != doing.size()) pairs_.assign(doing.size(), {});
    for (Duration passed = {}; passed < length; passed += 1s) {
      now_ += 1s;
      for (std::uint32_t i = 0; i < doing.size(); ++i) {
        const Doing& each = doing[i];
        Pair& pair = pairs_[i];
        pair.id = i;
        pair.job = each.job;
        pair.stage = each.stage;
        pair.weight = each.weight;
        pair.done += each.cost;
        pair.times.present += part(each.present);
        pair.times.crowded += part(each.crowded);
        pair.times.without_queue += part(each.without_queue);
        pair.times.limited += part(each.limited);
      }
      watch_.look(
          pairs_, kJobs, [&](std::size_t row) { return kStages[pairs_[row].stage]; }, now_);
    }
  }
  [[nodiscard]] Why why(std::string_view job) const { return watch_.verdict(job)->why; }

  TotalsWatch watch_;
  TimePoint now_ = TimePoint{} + 77s;
  std::vector<Pair> pairs_;
};

TEST_F(TotalsWatchTest, EqualTotalsAreReached) {
  run({{.job = 0, .stage = 0, .cost = 75},
       {.job = 0, .stage = 1, .cost = 25},
       {.job = 1, .stage = 1, .cost = 95}});
  EXPECT_EQ(why("a"), Why::reached);
  EXPECT_EQ(why("b"), Why::reached) << "95 % are enough";
  EXPECT_EQ(watch_.verdict("b")->done, 950U);
  EXPECT_EQ(watch_.verdict("b")->entitled, 975U);
  EXPECT_EQ(text_of(*watch_.verdict("b")), "");
}

TEST_F(TotalsWatchTest, NothingIsSaidBeforeASpanIsOver) {
  run({{.job = 0, .stage = 0, .cost = 75}}, 10s);
  EXPECT_EQ(watch_.verdict("a"), nullptr);
  EXPECT_EQ(watch_.verdict("unknown"), nullptr);
}

TEST_F(TotalsWatchTest, AJobWithoutAQueueWhereOthersHaveMoreIsToldTheStage) {
  run({{.job = 0, .stage = 0, .cost = 100},
       {.job = 0, .stage = 1, .cost = 50},
       {.job = 1, .stage = 1, .cost = 50, .without_queue = 0.5}});
  EXPECT_EQ(why("a"), Why::reached);
  EXPECT_EQ(why("b"), Why::no_queue);
  EXPECT_THAT(watch_.verdict("b")->stages, ElementsAre("s1"));
  EXPECT_EQ(text_of(*watch_.verdict("b")), "keeps no queue at s1");
}

// A ratio of 1.10 is what few requests in flight can reach; more is told.
TEST_F(TotalsWatchTest, ARatioOfMoreThanOnePointOneIsTold) {
  run({{.job = 0, .stage = 0, .cost = 1000},
       {.job = 0, .stage = 1, .cost = 50},
       {.job = 1, .stage = 1, .cost = 955, .without_queue = 0.5}});
  EXPECT_EQ(why("b"), Why::reached);
  run({{.job = 0, .stage = 0, .cost = 1000},
       {.job = 0, .stage = 1, .cost = 65},
       {.job = 1, .stage = 1, .cost = 935, .without_queue = 0.5}});
  EXPECT_EQ(why("b"), Why::no_queue);
}

TEST_F(TotalsWatchTest, AStageThatIsNeverCrowdedHasNoQueues) {
  run({{.job = 0, .stage = 0, .cost = 100, .crowded = 0},
       {.job = 0, .stage = 1, .cost = 50, .crowded = 0},
       {.job = 1, .stage = 1, .cost = 50, .crowded = 0}});
  EXPECT_EQ(why("b"), Why::no_queue);
}

TEST_F(TotalsWatchTest, WithAQueueTheLongestDelayIsTheReason) {
  run({{.job = 0, .stage = 0, .cost = 100},
       {.job = 0, .stage = 1, .cost = 30},
       {.job = 1, .stage = 1, .cost = 70}});
  EXPECT_EQ(why("b"), Why::delay);
  EXPECT_THAT(watch_.verdict("b")->stages, ElementsAre("s1"));
}

TEST_F(TotalsWatchTest, ALimitIsTheReasonBeforeAllOthers) {
  run({{.job = 0, .stage = 0, .cost = 100},
       {.job = 0, .stage = 1, .cost = 50},
       {.job = 1, .stage = 1, .cost = 50, .without_queue = 0.5, .limited = 0.6}});
  EXPECT_EQ(why("b"), Why::limit);
}

// a and b share s1 alike, and c has s0 for itself.
TEST_F(TotalsWatchTest, WithoutABetterJobOnItsStagesThereIsNoMoreCapacity) {
  run({{.job = 0, .stage = 1, .cost = 50},
       {.job = 1, .stage = 1, .cost = 50},
       {.job = 2, .stage = 0, .cost = 100}});
  EXPECT_EQ(why("a"), Why::no_capacity);
  EXPECT_EQ(why("b"), Why::no_capacity);
  EXPECT_EQ(why("c"), Why::reached);
  EXPECT_THAT(watch_.verdict("a")->stages, IsEmpty());
}

TEST_F(TotalsWatchTest, AJobAloneOnItsStageWithoutAQueueAsksForNoMore) {
  run({{.job = 0, .stage = 0, .cost = 20, .crowded = 0}, {.job = 1, .stage = 1, .cost = 100}});
  EXPECT_EQ(why("a"), Why::asks_for_no_more);
  run({{.job = 0, .stage = 0, .cost = 20}, {.job = 1, .stage = 1, .cost = 100}});
  EXPECT_EQ(why("a"), Why::no_capacity) << "its server does no more";
}

TEST_F(TotalsWatchTest, AMostlyIdleJobIsNotJudgedAndTakesNoPart) {
  run({{.job = 0, .stage = 0, .cost = 50},
       {.job = 1, .stage = 0, .cost = 50},
       {.job = 2, .stage = 0, .cost = 1, .present = 0.3, .weight = 100}});
  EXPECT_EQ(watch_.verdict("c"), nullptr);
  EXPECT_EQ(why("a"), Why::reached);
}

TEST_F(TotalsWatchTest, WeightsDivide) {
  run({{.job = 0, .stage = 0, .cost = 75, .weight = 3}, {.job = 1, .stage = 0, .cost = 25}});
  EXPECT_EQ(why("a"), Why::reached);
  EXPECT_EQ(why("b"), Why::reached);
  run({{.job = 0, .stage = 0, .cost = 50, .without_queue = 0.6, .weight = 3},
       {.job = 1, .stage = 0, .cost = 50}});
  EXPECT_EQ(why("a"), Why::no_queue);
  EXPECT_EQ(why("b"), Why::reached);
  EXPECT_EQ(watch_.verdict("a")->entitled, 750U);
}

TEST_F(TotalsWatchTest, WhatAFewRequestsOfOthersTakeDoesNotMatter) {
  run({{.job = 0, .stage = 0, .cost = 200},
       {.job = 0, .stage = 1, .cost = 2},
       {.job = 1, .stage = 1, .cost = 98, .without_queue = 0.5}});
  EXPECT_EQ(why("b"), Why::no_capacity);
}

TEST_F(TotalsWatchTest, EachSpanIsJudgedByItself) {
  const std::vector<Doing> bad = {{.job = 0, .stage = 0, .cost = 150},
                                  {.job = 1, .stage = 0, .cost = 50, .without_queue = 0.5}};
  const std::vector<Doing> good = {{.job = 0, .stage = 0, .cost = 100},
                                   {.job = 1, .stage = 0, .cost = 100}};
  run(bad);
  EXPECT_EQ(why("b"), Why::no_queue);
  run(good);
  EXPECT_EQ(why("b"), Why::reached);
}

// A pair's number may be another pair's later, which begins at zero.
TEST_F(TotalsWatchTest, CountersThatGoBackBeginAnew) {
  const std::vector<Doing> doing = {{.job = 0, .stage = 0, .cost = 100},
                                    {.job = 1, .stage = 0, .cost = 100}};
  run(doing, 12s);
  pairs_[1].done = 0;
  pairs_[1].times = {};
  run(doing, 9s);
  EXPECT_EQ(watch_.verdict("a")->done, 1000U);
  EXPECT_EQ(watch_.verdict("b")->done, 900U);
}

TEST(TotalsWatchTexts, FewStagesAreNamed) {
  TotalsWatch::Verdict verdict = {.why = Why::no_queue, .stages = {"a", "b", "c", "d"}};
  EXPECT_EQ(text_of(verdict), "keeps no queue at a, b, c, d");
  verdict.stages = {"a", "b", "c", "d", "e", "f"};
  EXPECT_EQ(text_of(verdict), "keeps no queue at a, b, c, d and 2 more");
}

// The coordinator does not know the settings of the stages' schedulers.
TEST(TotalsWatchTexts, AnticipationIsAdvisedOnlyWhereItIsOff) {
  EXPECT_EQ(remedy_of({.why = Why::no_queue}),
            "sfq.anticipation unless it is on, more requests in flight, or a smaller "
            "depth.requests");
}

TEST(TotalsWatchTexts, EveryReasonHasATextAndARemedy) {
  for (const Why why :
       {Why::limit, Why::no_queue, Why::delay, Why::no_capacity, Why::asks_for_no_more}) {
    EXPECT_NE(text_of({.why = why}), "");
    EXPECT_NE(remedy_of({.why = why}), "");
  }
  EXPECT_EQ(remedy_of({}), "");
}

}  // namespace
}  // namespace vpfs::allocation
