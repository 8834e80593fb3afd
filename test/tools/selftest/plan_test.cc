#include "tools/selftest/plan.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

namespace vpfs::selftest {
namespace {

using namespace std::chrono_literals;

PlanInput usual() {
  return {.time = 180s, .direct = true, .proxy_depth = 16};
}

std::size_t count(const std::vector<Phase>& phases, Purpose purpose) {
  return static_cast<std::size_t>(std::ranges::count(phases, purpose, &Phase::purpose));
}

Duration length(const std::vector<Phase>& phases) {
  Duration sum = {};
  for (const Phase& each : phases) sum += each.length;
  return sum;
}

TEST(Plan, KeepsWithinItsTime) {
  for (const Duration time : {Duration(3s), Duration(180s), Duration(600s)}) {
    PlanInput input = usual();
    input.time = time;
    EXPECT_LE(length(plan(input)), time);
    EXPECT_GE(length(plan(input)), time * 3 / 4);
  }
}

TEST(Plan, BeginsWithALookAtTheWayThroughTheProxy) {
  const Phase first = plan(usual()).front();
  EXPECT_EQ(first.purpose, Purpose::check);
  EXPECT_EQ(first.path, Path::proxy);
}

TEST(Plan, MeasuresTheServerPastTheProxyIfThereIsAWay) {
  for (const Phase& each : plan(usual())) {
    if (each.purpose == Purpose::depth || each.purpose == Purpose::cost) {
      EXPECT_EQ(each.path, Path::direct);
    }
    if (each.purpose == Purpose::weights || each.purpose == Purpose::limit) {
      EXPECT_EQ(each.path, Path::proxy);
    }
  }
}

TEST(Plan, WithoutAWayPastTheProxyNothingGoesThere) {
  PlanInput input = usual();
  input.direct = false;
  const std::vector<Phase> phases = plan(input);
  EXPECT_EQ(std::ranges::count(phases, Path::direct, &Phase::path), 0);
  EXPECT_EQ(count(phases, Purpose::path_cost), 0U);
  EXPECT_EQ(count(phases, Purpose::depth), 14U);
}

TEST(Plan, BesideOthersOnlyWhatHoldsIsMeasured) {
  PlanInput input = usual();
  input.direct = false;
  input.shared = true;
  for (const Phase& each : plan(input)) {
    EXPECT_TRUE(each.purpose == Purpose::check || each.purpose == Purpose::weights ||
                each.purpose == Purpose::limit);
  }
}

TEST(Plan, APolicyWithoutWeightsOrLimitsIsNotAskedForThem) {
  PlanInput input = usual();
  input.weights = false;
  EXPECT_EQ(count(plan(input), Purpose::weights), 0U);
  EXPECT_EQ(count(plan(input), Purpose::limit), 1U);
  input.limits = false;
  EXPECT_EQ(count(plan(input), Purpose::limit), 0U);
}

TEST(Plan, SharesHaveTwiceTheDepthInFlight) {
  for (const auto& [depth, in_flight] :
       {std::pair(1, 16), std::pair(16, 32), std::pair(500, 128)}) {
    PlanInput input = usual();
    input.proxy_depth = static_cast<std::uint64_t>(depth);
    for (const Phase& each : plan(input)) {
      if (each.purpose != Purpose::weights) continue;
      EXPECT_EQ(each.in_flight, static_cast<std::uint64_t>(in_flight));
      EXPECT_EQ(each.applications(), 2U);
    }
  }
}

TEST(Plan, AShareBoundsWhatIsInFlight) {
  PlanInput input = usual();
  input.most_in_flight = 4;
  for (const Phase& each : plan(input)) {
    if (each.purpose == Purpose::weights) EXPECT_EQ(each.in_flight, 4U);
  }
}

TEST(Plan, CostsAreMeasuredInTwoMoreSizesAtOneOfTheDepths) {
  const std::vector<Phase> phases = plan(usual());
  EXPECT_EQ(count(phases, Purpose::cost), 4U);
  EXPECT_TRUE(std::ranges::any_of(phases, [](const Phase& each) {
    return each.purpose == Purpose::depth && each.in_flight == kCostDepth;
  }));
}

}  // namespace
}  // namespace vpfs::selftest
