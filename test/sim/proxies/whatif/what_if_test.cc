#include "sim/proxies/whatif/what_if.h"

#include <string>

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

// Two servers of 100 MiB/s, and virtual PFSes `a` and `b` for jobs of these names.
class WhatIfTest : public testing::Test {
 protected:
  WhatIfTest() {
    config_.policy = "sfq";
    config_.scheduler.depth.requests = 2;
    scenario_.servers = 2;
    scenario_.device = {.bandwidth = {100 * kMiB}, .per_request = 0ns, .parallelism = 1};
    scenario_.warm_up = 1s;
    scenario_.duration = 4s;
    scenario_.interval = 1s;
  }
  void add_virtual_pfs(const std::string& name, std::uint32_t weight) {
    config_.virtual_pfs.push_back({.name = name, .share = {.weight = weight}});
    stage::RuleConfig rule{.name = name};
    rule.any_of = {stage::Conditions{.hints = {{"jobid", {name}}}}};
    rule.virtual_pfs = name;
    config_.rules.push_back(rule);
  }
  SimulatedApplication& add_application(const std::string& name) {
    SimulatedApplication& application = scenario_.applications.emplace_back();
    application.name = application.jobid = name;
    application.outstanding = 8;
    return application;
  }
  WhatIfResult run() {
    config_.virtual_pfs.push_back({.name = "default", .share = {}});
    WhatIf simulation(scenario_, config_);
    simulation.run_until(simulation.length());
    return simulation.result();
  }
  double mib_per_second(const ApplicationResult& application) {
    return static_cast<double>(application.moved.count) / static_cast<double>(kMiB) / 4;
  }

  Scenario scenario_;
  stage::Config config_;
};

TEST_F(WhatIfTest, ArrivalsThatAreNeverServedEndTheRun) {
  add_application("slow");
  SimulatedApplication& flood = add_application("flood");
  flood.arrivals = SimulatedApplication::Arrivals::even;
  flood.between = 10us;
  scenario_.most_under_way = 1000;
  config_.virtual_pfs.push_back({.name = "default", .share = {}});
  WhatIf simulation(scenario_, config_);
  simulation.run_until(simulation.length());
  EXPECT_LT(simulation.now(), 1s);
  EXPECT_EQ(simulation.problem().find("application 'flood' has "), 0U) << simulation.problem();
  const std::uint64_t events = simulation.events();
  simulation.run_until(simulation.length());
  EXPECT_EQ(simulation.events(), events);
}

TEST_F(WhatIfTest, TheVirtualPfsShownIsThatOfReadsWhateverComesFirst) {
  for (const char* const name : {"reads", "writes"}) {
    config_.virtual_pfs.push_back({.name = name, .share = {.weight = 2}});
    stage::RuleConfig rule{.name = name};
    rule.any_of = {
        stage::Conditions{.kinds = {name == std::string("reads") ? IoKind::read : IoKind::write}}};
    rule.virtual_pfs = name;
    config_.rules.push_back(rule);
  }
  config_.virtual_pfs.push_back({.name = "default", .share = {}});
  SimulatedApplication& application = add_application("both");
  application.read_percent = 50;
  const auto shown = [this] {
    WhatIf simulation(scenario_, config_);
    simulation.run_until(simulation.length());
    return simulation.result().applications[0].virtual_pfs;
  };
  for (scenario_.seed = 1; scenario_.seed <= 6; ++scenario_.seed) EXPECT_EQ(shown(), "reads");
  application.read_percent = 0;
  EXPECT_EQ(shown(), "writes");
}

TEST_F(WhatIfTest, OneApplicationGetsWhatAllServersHave) {
  add_application("alone");
  const WhatIfResult result = run();
  EXPECT_NEAR(mib_per_second(result.applications[0]), 200, 1);
  EXPECT_EQ(result.applications[0].virtual_pfs, "default");
  ASSERT_EQ(result.applications[0].course.size(), 4U);
  Bytes sum;
  for (const Bytes each : result.applications[0].course) sum += each;
  EXPECT_EQ(sum, result.applications[0].moved);
}

TEST_F(WhatIfTest, OneRequestTakesItsTimeOnTheWayAndAtTheDevice) {
  scenario_.device.per_request = 300us;
  scenario_.round_trip = 100us;
  SimulatedApplication& application = add_application("alone");
  application.outstanding = 1;
  application.datafiles = 1;
  const WhatIfResult result = run();
  // 1 MiB at 100 MiB/s, and one nanosecond for what each half of the way rounds.
  const Duration expected = 10ms + 300us + 100us;
  EXPECT_GE(result.applications[0].latency.max(), expected - 2ns);
  EXPECT_LE(result.applications[0].latency.max(), expected + 2ns);
  EXPECT_EQ(result.applications[0].held.max(), Duration::zero());
}

TEST_F(WhatIfTest, WeightsDivideWhatIsThere) {
  add_virtual_pfs("a", 3);
  add_virtual_pfs("b", 1);
  add_application("a");
  add_application("b").processes = 4;
  const WhatIfResult result = run();
  EXPECT_NEAR(mib_per_second(result.applications[0]), 150, 2);
  EXPECT_NEAR(mib_per_second(result.applications[1]), 50, 2);
  EXPECT_EQ(result.applications[0].promise.weight, 3U);
  EXPECT_GT(result.applications[1].held.quantile(0.5), result.applications[0].held.quantile(0.5));
}

TEST_F(WhatIfTest, WithoutSharesAnApplicationWithMoreRequestsGetsMore) {
  config_.policy = "fifo";
  add_application("a");
  add_application("b").processes = 3;
  const WhatIfResult result = run();
  EXPECT_NEAR(mib_per_second(result.applications[0]), 50, 3);
  EXPECT_NEAR(mib_per_second(result.applications[1]), 150, 3);
}

TEST_F(WhatIfTest, ALimitHolds) {
  config_.policy = "tbf";
  config_.virtual_pfs.push_back({.name = "a", .share = {.rate = {10 * kMiB}}});
  add_virtual_pfs("b", 1);
  config_.rules.push_back({.name = "a",
                           .any_of = {stage::Conditions{.hints = {{"jobid", {"a"}}}}},
                           .virtual_pfs = "a"});
  add_application("a");
  // The limit is of each server.
  EXPECT_NEAR(mib_per_second(run().applications[0]), 20, 1);
}

TEST_F(WhatIfTest, ArrivalsThatDoNotWaitComeAtTheirRate) {
  using Arrivals = SimulatedApplication::Arrivals;
  for (const Arrivals arrivals : {Arrivals::even, Arrivals::random}) {
    SimulatedApplication& application =
        add_application(arrivals == Arrivals::even ? "even" : "random");
    application.arrivals = arrivals;
    application.between = 10ms;
    application.size = {64 * kKiB};
  }
  const WhatIfResult result = run();
  EXPECT_EQ(result.applications[0].requests, 400U);
  EXPECT_NEAR(static_cast<double>(result.applications[1].requests), 400, 4 * 20);
}

TEST_F(WhatIfTest, ABurstIsActiveForItsLengthOnly) {
  SimulatedApplication& application = add_application("bursts");
  application.outstanding = 1;
  application.burst = SimulatedApplication::Burst{.length = 500ms, .interval = 1s};
  EXPECT_NEAR(mib_per_second(run().applications[0]), 100, 5);
}

TEST_F(WhatIfTest, AnApplicationIsThereFromItsStartToItsStop) {
  SimulatedApplication& application = add_application("short");
  application.start = 2s;
  application.stop = 3s;
  const WhatIfResult result = run();
  EXPECT_EQ(result.applications[0].course[0], Bytes{0});
  EXPECT_GT(result.applications[0].course[1], Bytes{190 * kMiB});
  EXPECT_LT(result.applications[0].course[2], Bytes{10 * kMiB});
  EXPECT_EQ(result.applications[0].course[3], Bytes{0});
}

TEST_F(WhatIfTest, ATemplateMakesAVirtualPfsForEachJob) {
  config_.virtual_pfs.push_back({.name = "job-{jobid}", .share = {}});
  config_.rules.push_back({.name = "jobs",
                           .any_of = {stage::Conditions{.hints = {{"jobid", {"*"}}}}},
                           .virtual_pfs = "job-{jobid}"});
  add_application("17");
  add_application("18").processes = 3;
  const WhatIfResult result = run();
  EXPECT_EQ(result.applications[0].virtual_pfs, "job-17");
  EXPECT_EQ(result.applications[1].virtual_pfs, "job-18");
  EXPECT_NEAR(mib_per_second(result.applications[0]), 100, 2);
}

TEST_F(WhatIfTest, TheSameSeedGivesTheSameRunWhateverTheSteps) {
  SimulatedApplication& application = add_application("random");
  application.arrivals = SimulatedApplication::Arrivals::random;
  application.between = 4ms;
  application.read_percent = 50;
  application.random_places = true;
  config_.virtual_pfs.push_back({.name = "default", .share = {}});
  const auto times = [&](std::uint64_t seed, int steps) {
    scenario_.seed = seed;
    WhatIf simulation(scenario_, config_);
    for (int i = 1; i <= steps; ++i) simulation.run_until(simulation.length() * i / steps);
    const WhatIfResult result = simulation.result();
    return std::pair(result.events, result.applications[0].latency.mean());
  };
  EXPECT_EQ(times(1, 1), times(1, 7));
  EXPECT_NE(times(1, 1), times(2, 1));
}

TEST_F(WhatIfTest, RecordedArrivalsComeAsTheyWereRecorded) {
  SimulatedApplication& application = add_application("replayed");
  application.arrivals = SimulatedApplication::Arrivals::recorded;
  application.processes = 3;
  application.start = 1s;  // with the measured time
  application.recorded = {{.until = 1s, .requests = 20},
                          {.until = 2s, .requests = 0},
                          {.until = 2500ms, .requests = 40},
                          {.until = 60s, .requests = 0}};
  const WhatIfResult result = run();
  const ApplicationResult& found = result.applications[0];
  EXPECT_EQ(found.requests, 60U);
  EXPECT_EQ(found.course[0], Bytes{20 * kMiB});
  EXPECT_EQ(found.course[1], Bytes{});
  EXPECT_EQ(found.course[2], Bytes{40 * kMiB});
}

TEST_F(WhatIfTest, RecordedArrivalsEndWhenTheApplicationStops) {
  SimulatedApplication& application = add_application("replayed");
  application.arrivals = SimulatedApplication::Arrivals::recorded;
  application.recorded = {{.until = 4s, .requests = 40}};
  application.stop = 2s;
  EXPECT_EQ(run().applications[0].requests, 10U);
}

}  // namespace
}  // namespace vpfs::sim
