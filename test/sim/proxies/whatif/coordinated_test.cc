// A coordinator over simulated servers: what applications get on all of them together.

#include <cstddef>
#include <string>

#include <gtest/gtest.h>

#include "schedulers/policies/anticipation_settings.h"
#include "sim/proxies/whatif/what_if.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

// Four servers of 100 MiB/s. `wide` has files on all of them, `narrow` on the first one.
class CoordinatedTest : public testing::Test {
 protected:
  CoordinatedTest() {
    config_.policy = "sfq";
    config_.scheduler.depth.requests = 2;
    for (const char* const name : {"wide", "narrow"}) {
      config_.virtual_pfs.push_back({.name = name, .share = {}});
      stage::RuleConfig rule{.name = name};
      rule.any_of = {stage::Conditions{.hints = {{"jobid", {name}}}}};
      rule.virtual_pfs = name;
      config_.rules.push_back(rule);
      SimulatedApplication& application = scenario_.applications.emplace_back();
      application.name = application.jobid = name;
      application.size = {256 * kKiB};
      application.processes = 32;
      application.outstanding = 2;
      application.datafiles = 1;
    }
    scenario_.applications[1].servers = 1;
    scenario_.applications[1].processes = 8;
    config_.virtual_pfs.push_back({.name = "default", .share = {}});
    scenario_.servers = 4;
    scenario_.device = {.bandwidth = {100 * kMiB}, .per_request = 0ns, .parallelism = 1};
    scenario_.warm_up = 2s;
    scenario_.duration = 8s;
    scenario_.interval = 1s;
  }
  CoordinatorSettings& coordinator(const char* policy) {
    scenario_.coordinator.emplace();
    scenario_.coordinator->policy = allocation::find_policy(policy);
    return *scenario_.coordinator;
  }
  WhatIfResult run() {
    EXPECT_EQ(problem_of(scenario_, config_), "");
    WhatIf simulation(scenario_, config_);
    simulation.run_until(simulation.length());
    return simulation.result();
  }
  // MiB/s of one second of the measured time.
  static double rate(const WhatIfResult& result, std::size_t application, std::size_t second) {
    return static_cast<double>(result.applications[application].course[second].count) /
           static_cast<double>(kMiB);
  }
  static void expect_rates(const WhatIfResult& result, std::size_t second, double wide,
                           double narrow) {
    EXPECT_NEAR(rate(result, 0, second), wide, 0.05 * wide) << "second " << second;
    EXPECT_NEAR(rate(result, 1, second), narrow, 0.05 * narrow) << "second " << second;
  }

  Scenario scenario_;
  stage::Config config_;
};

TEST_F(CoordinatedTest, EachServerSharesAloneWithoutOne) {
  const WhatIfResult result = run();
  for (std::size_t second = 0; second < 8; ++second) expect_rates(result, second, 350, 50);
}

TEST_F(CoordinatedTest, TotalServiceFollowsTheWeightsAsFarAsItCan) {
  coordinator("total");
  // Half of all is 200 MiB/s, and its server has 100. The other one has waited for long now and
  // then, so it gets a little there.
  const WhatIfResult result = run();
  EXPECT_GT(rate(result, 1, 4), 90);
  EXPECT_GT(rate(result, 0, 4), 295);
}

TEST_F(CoordinatedTest, TotalServiceFollowsTheWeightsExactlyWhereItCan) {
  coordinator("total");
  config_.virtual_pfs[0].share.weight = 4;  // so `narrow` is entitled to 80 of 400
  const WhatIfResult result = run();
  for (std::size_t second = 2; second < 8; ++second) expect_rates(result, second, 320, 80);
}

TEST_F(CoordinatedTest, WhileItIsAwayEachServerSharesAlone) {
  coordinator("total").away = Absence{.from = 4s, .until = 8s};
  config_.virtual_pfs[0].share.weight = 4;
  const WhatIfResult result = run();
  expect_rates(result, 1, 320, 80);
  // Its lease has ended after a second. A fifth of one server is left.
  expect_rates(result, 4, 380, 20);
  expect_rates(result, 7, 320, 80);
}

// `wide` on two servers, `narrow` on one of them, with a few large requests in flight each. Half of
// all is what the other server does, so equal totals are feasible.
class FewInFlightTest : public CoordinatedTest {
 protected:
  FewInFlightTest() {
    coordinator("total");
    scenario_.servers = 2;
    scenario_.device = {.bandwidth = {40 * kMiB}, .per_request = 100us, .parallelism = 1};
    scenario_.warm_up = 10s;
    scenario_.duration = 50s;
    for (SimulatedApplication& each : scenario_.applications) each.outstanding = 1;
    config_.cost.per_request = {16 * kKiB};
  }
  // What `wide` gets for each byte of `narrow`, with so many requests in flight on each server.
  double ratio(std::uint64_t in_flight, Bytes size) {
    scenario_.applications[0].processes = 2 * in_flight;
    scenario_.applications[1].processes = in_flight;
    for (SimulatedApplication& each : scenario_.applications) each.size = size;
    const WhatIfResult result = run();
    double wide = 0;
    double narrow = 0;
    for (std::size_t second = 0; second < 50; ++second) {
      wide += rate(result, 0, second);
      narrow += rate(result, 1, second);
    }
    return wide / narrow;
  }
};

TEST_F(FewInFlightTest, LargeRequestsDoNotKeepTotalsApart) {
  config_.scheduler.depth.requests = 1;
  EXPECT_LT(ratio(2, {kMiB}), 1.1);
  EXPECT_LT(ratio(2, {2 * kMiB}), 1.1);
  EXPECT_LT(ratio(4, {2 * kMiB}), 1.1);
  // Each request waits in turn, so what is fixed decides: (1 + 0.1) / (1 - 0.1).
  config_.longest_delay = 500ms;
  EXPECT_NEAR(ratio(2, {2 * kMiB}), 1.22, 0.03);
}

TEST_F(FewInFlightTest, AnticipationHelpsWhereTheDepthHoldsNothingBack) {
  // Nothing is ever held: no coordinator can change anything.
  EXPECT_GT(ratio(1, {kMiB}), 2.9);
  config_.scheduler.own.set(AnticipationSettings{.on = true});
  EXPECT_LT(ratio(1, {kMiB}), 1.13);
  config_.longest_delay = 5s;
  EXPECT_LT(ratio(1, {kMiB}), 1.1);
}

TEST_F(CoordinatedTest, CapsFollowDemand) {
  CoordinatorSettings& settings = coordinator("psfa");
  settings.amounts.capacity.bytes = 200 * kMiB;
  settings.amounts.floor.bytes = kMiB;
  // Half of the capacity is for each. What requests cost besides their bytes is not capped.
  const WhatIfResult result = run();
  for (std::size_t second = 2; second < 8; ++second) {
    EXPECT_LT(rate(result, 0, second) + rate(result, 1, second), 200 * 1.05);
    EXPECT_NEAR(rate(result, 1, second), rate(result, 0, second), 45);
  }
  settings.amounts.capacity.bytes = 40 * kMiB;
  const WhatIfResult slower = run();
  EXPECT_NEAR(rate(slower, 0, 5) + rate(slower, 1, 5), 40, 4);
}

TEST_F(CoordinatedTest, TwoRunsAreTheSame) {
  coordinator("psfa").amounts.capacity.bytes = 300 * kMiB;
  const WhatIfResult one = run();
  const WhatIfResult other = run();
  EXPECT_EQ(one.events, other.events);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(one.applications[i].course, other.applications[i].course);
  }
}

TEST_F(CoordinatedTest, APolicyThatStagesCannotEnforceIsAProblem) {
  coordinator("total");
  config_.policy = "fifo";
  EXPECT_EQ(problem_of(scenario_, config_),
            "total has nothing that the scheduler's policy fifo can do");
}

}  // namespace
}  // namespace vpfs::sim
