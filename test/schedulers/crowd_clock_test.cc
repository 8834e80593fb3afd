#include "schedulers/crowd_clock.h"

#include <array>
#include <utility>

#include <gtest/gtest.h>

#include "schedulers/policies/registry.h"
#include "test/support/simulation/flow_simulation.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kBegin = TimePoint{} + 7s;

class CrowdClockTest : public ::testing::Test {
 protected:
  enum Phase { absent, at_server, queued };

  CrowdClockTest() { clock_.grow(3); }
  // Requests pass the queue on their way to the server.
  void enter(std::uint32_t flow, Phase phase, TimePoint now) {
    const Phase before = std::exchange(phases_[flow], phase);
    if (phase != absent && before != queued) clock_.begin_queue(flow, now);
    if (phase == at_server) clock_.end_queue(flow, true, now);
    if (phase == absent && before == queued) clock_.end_queue(flow, false, now);
    if (phase == absent && before == at_server) clock_.leave(flow, now);
  }
  [[nodiscard]] Crowding of(std::uint32_t flow, Duration after) const {
    return clock_.crowding(flow, kBegin + after);
  }

  CrowdClock clock_;

 private:
  std::array<Phase, 3> phases_ = {};
};

TEST_F(CrowdClockTest, CountsOnlyCrowdedTimeButPresenceAlways) {
  enter(0, at_server, kBegin);
  enter(1, queued, kBegin);
  clock_.set_holding(true, kBegin + 2s);
  clock_.set_holding(false, kBegin + 5s);
  enter(0, absent, kBegin + 6s);
  const Crowding got = of(0, 9s);
  EXPECT_EQ(got.present, 6s);
  EXPECT_EQ(got.in_flight, 3s);
  EXPECT_EQ(got.without_queue, 3s);
  EXPECT_EQ(got.crowded, 3s);
  EXPECT_DOUBLE_EQ(got.entitled, 1.5e9) << "half of it";
}

TEST_F(CrowdClockTest, NothingIsCrowdedWhileNothingIsQueued) {
  enter(0, at_server, kBegin);
  clock_.set_holding(true, kBegin);
  EXPECT_EQ(of(0, 2s).crowded, 0s);
  enter(1, queued, kBegin + 2s);
  clock_.set_holding(true, kBegin + 2s);
  EXPECT_EQ(of(0, 5s).crowded, 3s);
  enter(1, at_server, kBegin + 5s);
  clock_.set_holding(true, kBegin + 5s);
  EXPECT_EQ(of(0, 9s).crowded, 3s);
}

TEST_F(CrowdClockTest, PhasesAddUpInAnyOrder) {
  enter(1, queued, kBegin);
  clock_.set_holding(true, kBegin);
  enter(0, queued, kBegin + 1s);
  enter(0, at_server, kBegin + 2s);
  enter(0, queued, kBegin + 4s);
  enter(0, absent, kBegin + 5s);
  enter(0, queued, kBegin + 9s);
  enter(0, at_server, kBegin + 10s);
  EXPECT_EQ(of(0, 13s).without_queue, 5s);
  EXPECT_EQ(of(0, 13s).in_flight, 8s);
  EXPECT_EQ(of(0, 13s).present, 8s);
  EXPECT_DOUBLE_EQ(of(0, 13s).entitled, 4e9);
  EXPECT_DOUBLE_EQ(of(1, 13s).entitled, 9e9);
}

TEST_F(CrowdClockTest, DividesCrowdedTimeByTheWeightsOfThoseInFlight) {
  clock_.set_weight(0, 3, kBegin);
  enter(0, queued, kBegin);
  enter(1, queued, kBegin);
  clock_.set_holding(true, kBegin);
  enter(0, at_server, kBegin + 4s);
  enter(0, absent, kBegin + 8s);
  EXPECT_DOUBLE_EQ(of(0, 9s).entitled, 6e9) << "3/4 of 8 s";
  EXPECT_EQ(of(0, 9s).without_queue, 4s);
  EXPECT_DOUBLE_EQ(of(1, 9s).entitled, 3e9) << "1/4 of 8 s, and then all of 1 s";
  EXPECT_EQ(of(1, 9s).in_flight, 9s) << "up to now";
  EXPECT_EQ(of(1, 9s).without_queue, 0s);
  EXPECT_DOUBLE_EQ(of(2, 9s).entitled, 0);
}

TEST_F(CrowdClockTest, AWeightThatChangesCountsFromThenOn) {
  enter(0, queued, kBegin);
  enter(1, queued, kBegin);
  clock_.set_holding(true, kBegin);
  clock_.set_weight(0, 4, kBegin + 2s);
  enter(0, absent, kBegin + 12s);
  EXPECT_DOUBLE_EQ(of(0, 12s).entitled, 9e9) << "1/2 of 2 s, and 4/5 of 10 s";
  EXPECT_DOUBLE_EQ(of(1, 13s).entitled, 4e9) << "1/2 of 2 s, 1/5 of 10 s, and 1 s";
}

TEST_F(CrowdClockTest, CostCountsWhileCrowded) {
  clock_.sent(5);
  enter(0, queued, kBegin);
  clock_.set_holding(true, kBegin);
  clock_.sent(7);
  EXPECT_EQ(of(0, 0s).sent, 7U);
}

TEST_F(CrowdClockTest, KnowsNothingOfUnknownFlows) {
  enter(0, queued, kBegin);
  clock_.set_holding(true, kBegin);
  EXPECT_EQ(of(3, 9s).crowded, 0s);
}

// What a scheduler measures of two flows beside each other.
Crowding measured(std::uint32_t flow, std::uint32_t depth, std::uint32_t first_in_flight) {
  const auto scheduler = make_scheduler("sfq", {.depth = {.requests = depth}}).value();
  FlowSimulation simulation(*scheduler, {.cost_per_second = 64 * kMiB},
                            {{.outstanding = first_in_flight, .think = 50us}, {.outstanding = 16}},
                            1);
  simulation.run(10s);
  return *scheduler->crowding(AppId{flow}, 0, simulation.now());
}

TEST(SchedulerCrowding, AFlowWithOneRequestHasNoQueueWhileItIsAtTheServer) {
  for (const std::uint32_t depth : {1U, 4U, 15U}) {
    const Crowding one = measured(0, depth, 1);
    const Crowding other = measured(1, depth, 1);
    const double part = in_seconds(one.without_queue) / in_seconds(one.in_flight);
    EXPECT_NEAR(part, depth / (depth + 0.95), 0.01) << "it waits for one slot, then for the depth";
    EXPECT_NEAR(in_seconds(other.crowded), 10, 0.1);
    EXPECT_EQ(other.without_queue, 0s) << depth;
    // Half of the time, less the time for which it thinks: 50 us of each depth + 1 ms.
    const double entitled = 5e9 * (1 - 0.05 / (depth + 1));
    EXPECT_NEAR(one.entitled, entitled, 1e8);
    EXPECT_NEAR(other.entitled, 1e10 - entitled, 1e8);
    EXPECT_NEAR(static_cast<double>(other.sent), 640.0 * kMiB, 8 * kMiB);
  }
}

TEST(SchedulerCrowding, NothingIsCrowdedWhileAllFitIntoTheDepth) {
  const Crowding one = measured(0, 17, 1);
  EXPECT_EQ(one.crowded, 0s);
  EXPECT_EQ(one.in_flight, 0s);
  EXPECT_NEAR(in_seconds(one.present), 10, 0.1);
}

TEST(SchedulerCrowding, OnlyPoliciesWithWeightsMeasureIt) {
  const auto scheduler = make_scheduler("fifo", {}).value();
  EXPECT_FALSE(scheduler->crowding(AppId{0}, 0, kBegin).has_value());
}

TEST(SchedulerCrowding, EachTrafficClassIsMeasuredByItself) {
  const TrafficClasses classes = {.mode = TrafficClasses::Mode::apportion,
                                  .classes = {{.name = "a"}, {.name = "b"}}};
  const auto scheduler =
      make_scheduler("sfq", {.depth = {.requests = 4}, .classes = classes}).value();
  FlowSimulation simulation(*scheduler, {.cost_per_second = 64 * kMiB},
                            {{.outstanding = 16, .classes = {0}},
                             {.outstanding = 16, .classes = {1}},
                             {.outstanding = 16, .classes = {1}}},
                            1);
  simulation.run(10s);
  const TimePoint now = simulation.now();
  EXPECT_NEAR(scheduler->crowding(AppId{0}, 0, now)->entitled, 1e10, 1e8);
  EXPECT_NEAR(scheduler->crowding(AppId{1}, 1, now)->entitled, 5e9, 1e8);
  EXPECT_EQ(scheduler->crowding(AppId{1}, 0, now)->entitled, 0);
}

}  // namespace
}  // namespace vpfs
