#include "stage/share_watch.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/policies/registry.h"
#include "test/support/simulation/flow_simulation.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;

struct Setting {
  std::uint32_t depth = 16;
  bool anticipates = false;
};

// In how many of 20 seconds each flow keeps no queue, after 2 seconds.
std::vector<int> seconds_without_queue(const Setting& setting, std::vector<FlowWork> works) {
  const std::size_t flows = works.size();
  SchedulerSettings settings = {.depth = {.requests = setting.depth}};
  settings.own.set(AnticipationSettings{.on = setting.anticipates});
  const auto scheduler = make_scheduler("sfq", settings).value();
  FlowSimulation simulation(*scheduler, {.cost_per_second = 64 * kMiB}, std::move(works), 1);
  ShareWatch watch;
  std::vector<int> counts(flows);
  for (int second = 0; second < 22; ++second) {
    simulation.run(1s);
    for (std::uint32_t i = 0; i < flows; ++i) {
      const auto verdict =
          watch.look({.id = {.app = AppId{i}},
                      .crowding = *scheduler->crowding(AppId{i}, 0, simulation.now()),
                      .sent = simulation.sent_cost(i)},
                     simulation.now());
      if (second >= 2) counts[i] += verdict.keeps_no_queue ? 1 : 0;
    }
  }
  return counts;
}

constexpr Share kFour = {.weight = 4};

TEST(ShareWatchFlows, OneRequestInFlightBesideADeepQueueKeepsNone) {
  for (const std::uint32_t depth : {1U, 2U, 8U, 16U}) {
    const auto counts = seconds_without_queue(
        {.depth = depth}, {{.share = kFour, .outstanding = 1, .think = 50us}, {.outstanding = 32}});
    EXPECT_EQ(counts, (std::vector{20, 0})) << depth;
  }
}

// Its next request is there before the scheduler is asked again.
TEST(ShareWatchFlows, WithoutAThinkTimeOneRequestIsAQueueForADepthOfOne) {
  const auto counts = seconds_without_queue(
      {.depth = 1}, {{.share = kFour, .outstanding = 1}, {.outstanding = 32}});
  EXPECT_EQ(counts, (std::vector{0, 0}));
}

TEST(ShareWatchFlows, NeitherDoTwoBesideEachOtherButOnlyOneMissesItsShare) {
  const auto counts = seconds_without_queue(
      {.depth = 1},
      {{.share = kFour, .outstanding = 1, .think = 50us}, {.outstanding = 1, .think = 50us}});
  EXPECT_EQ(counts, (std::vector{20, 0}));
}

TEST(ShareWatchFlows, AFewRequestsThatAllFitIntoTheDepthKeepNone) {
  const auto counts =
      seconds_without_queue({}, {{.share = kFour, .outstanding = 4}, {.outstanding = 32}});
  EXPECT_EQ(counts, (std::vector{20, 0}));
}

TEST(ShareWatchFlows, AShortThinkTimeDoesNotHideIt) {
  const auto counts = seconds_without_queue(
      {},
      {{.share = kFour, .outstanding = 1, .think = 2ms, .think_spread = 1ms}, {.outstanding = 32}});
  EXPECT_EQ(counts, (std::vector{20, 0}));
}

TEST(ShareWatchFlows, DeepQueuesAreNotNamed) {
  for (const std::uint32_t depth : {1U, 16U}) {
    const auto counts = seconds_without_queue(
        {.depth = depth},
        {{.share = kFour, .outstanding = 32}, {.outstanding = 32}, {.outstanding = 20}});
    EXPECT_EQ(counts, (std::vector{0, 0, 0})) << depth;
  }
}

// A request takes the server 1 ms, and some 17 ms with what is before it.
TEST(ShareWatchFlows, AnApplicationThatIsMostlyIdleIsNotNamed) {
  const auto counts = seconds_without_queue(
      {}, {{.share = kFour, .outstanding = 1, .think = 50ms, .think_spread = 20ms},
           {.outstanding = 32}});
  EXPECT_EQ(counts, (std::vector{0, 0}));
}

TEST(ShareWatchFlows, WithoutContentionNoFlowIsNamed) {
  const auto counts =
      seconds_without_queue({}, {{.share = kFour, .outstanding = 1}, {.outstanding = 8}});
  EXPECT_EQ(counts, (std::vector{0, 0})) << "nothing waits, so no share is enforced";
}

TEST(ShareWatchFlows, ALimitOfItsOwnIsAnotherReason) {
  const auto counts = seconds_without_queue(
      {}, {{.share = {.weight = 4, .rate = {8 * kMiB}, .burst = {kMiB}}, .outstanding = 4},
           {.outstanding = 32}});
  EXPECT_EQ(counts, (std::vector{0, 0}));
}

TEST(ShareWatchFlows, AFlowThatGetsItsShareByAnticipationIsNotNamed) {
  const std::vector<FlowWork> works = {{.outstanding = 1, .think = 500us, .think_spread = 200us},
                                       {.outstanding = 16}};
  const auto off = seconds_without_queue({}, works);
  const auto on = seconds_without_queue({.anticipates = true}, works);
  EXPECT_EQ(off[0], 20);
  EXPECT_LE(on[0], 4);
  EXPECT_EQ(on[1], 0);
}

// The server waits for the one with the larger weight while the other one has a request queued.
TEST(ShareWatchFlows, AFlowBesideOneThatIsWaitedForIsNotNamed) {
  for (const std::uint32_t weight : {2U, 4U}) {
    for (const Duration think : {200us, 400us, 700us}) {
      const auto counts =
          seconds_without_queue({.depth = 1, .anticipates = true},
                                {{.share = {.weight = weight},
                                  .outstanding = 1,
                                  .think = think,
                                  .think_spread = think / 2},
                                 {.outstanding = 1, .think = think, .think_spread = think / 2}});
      EXPECT_LE(counts[1], 1) << weight << ", " << think / 1us << " us";
    }
  }
}

// Spans of readings that a test makes up: in flight, without a queue, and entitled to half.
class ShareWatchTest : public ::testing::Test {
 protected:
  bool look(Duration length) {
    now_ += length;
    reading_.crowding.in_flight += length;
    reading_.crowding.without_queue += length;
    reading_.crowding.crowded += length;
    reading_.crowding.entitled += static_cast<double>(length.count()) / 2;
    reading_.crowding.sent += 1000;
    reading_.sent += got_;
    return watch_.look(reading_, now_).keeps_no_queue;
  }

  ShareWatch watch_;
  TimePoint now_ = TimePoint{} + 7s;
  ShareWatch::Reading reading_;
  Cost got_ = 100;
};

TEST_F(ShareWatchTest, ASpanIsJudgedWhenItIsLongEnough) {
  EXPECT_FALSE(look(1s)) << "it begins";
  EXPECT_FALSE(look(500ms)) << "too short";
  EXPECT_TRUE(look(500ms));
  EXPECT_TRUE(look(100ms)) << "still of the last span";
  got_ = 480;
  EXPECT_TRUE(look(300ms)) << "likewise";
  EXPECT_TRUE(look(600ms)) << "it began with less";
  EXPECT_FALSE(look(1s));
}

TEST_F(ShareWatchTest, AVerdictIsDueWhenItsSpanIsOver) {
  EXPECT_EQ(watch_.unless_due(reading_.id, now_), nullptr) << "it has not begun";
  (void)look(1s);
  ASSERT_NE(watch_.unless_due(reading_.id, now_ + 899ms), nullptr);
  EXPECT_EQ(watch_.unless_due(reading_.id, now_ + 900ms), nullptr);
  (void)look(1s);
  EXPECT_TRUE(watch_.unless_due(reading_.id, now_)->keeps_no_queue);
  EXPECT_EQ(watch_.unless_due({.app = reading_.id.app, .generation = 9}, now_), nullptr);
}

TEST_F(ShareWatchTest, ATenthLessIsNotMissed) {
  (void)look(1s);
  got_ = 455;
  EXPECT_FALSE(look(1s));
  got_ = 445;
  EXPECT_TRUE(look(1s));
}

TEST_F(ShareWatchTest, AnotherVirtualPfsOrSchedulerBeginsAnew) {
  (void)look(1s);
  EXPECT_TRUE(look(1s));
  ++reading_.id.generation;
  EXPECT_FALSE(look(1s));
  EXPECT_EQ(watch_.look(reading_, now_).in_flight, 0s);
  EXPECT_TRUE(look(1s));
  reading_.crowding = {};
  ++reading_.schedulers;
  EXPECT_FALSE(look(1s));
  EXPECT_TRUE(look(1s));
  EXPECT_EQ(watch_.look(reading_, now_).in_flight, 2s) << "of both schedulers";
  reading_.traffic_class = 1;
  EXPECT_FALSE(look(1s));
}

TEST_F(ShareWatchTest, SumsStayWhenThereAreNoReadingsAnyMore) {
  (void)look(1s);
  ASSERT_TRUE(look(1s));
  const auto verdict = watch_.stop(reading_.id);
  EXPECT_FALSE(verdict.keeps_no_queue);
  EXPECT_EQ(verdict.in_flight, 1s);
  EXPECT_EQ(watch_.stop({.app = AppId{7}}).in_flight, 0s);
  reading_.crowding = {};
  ++reading_.schedulers;
  EXPECT_FALSE(look(1s));
  EXPECT_EQ(watch_.stop(reading_.id).in_flight, 1s);
}

}  // namespace
}  // namespace vpfs::stage
