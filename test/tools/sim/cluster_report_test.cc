#include "tools/sim/cluster_report.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/cluster/network/topologies.h"

namespace vpfs::sim_tool {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

FinishedCluster a_run(const std::string& name, Duration running) {
  FinishedCluster run{.name = name, .scenario = {}, .result = {}};
  run.scenario.network.topology = sim::make_single_switch(4, {1'000'000'000}).value();
  run.scenario.network.description = "switch";
  sim::ClusterApplicationResult a{.name = "<a>", .tasks = 2};
  a.arrived = TimePoint() + 1s;
  a.started = TimePoint() + 2s;
  a.ended = a.started + running;
  a.tally.time(sim::Step::write) = 3s;
  a.tally.local = {kGiB};
  a.tally.remote = {2 * kGiB};
  run.result.applications = {a};
  run.result.links = {
      {.name = "node 0 writes", .rate = {1'000'000'000}, .carried = {5'000'000'000}}};
  run.result.makespan = 1s + running;
  return run;
}

TEST(ClusterReport, ATableHasWhatApplicationsDidAndTheBusiestLinks) {
  const std::string table = to_table(a_run("c.yaml", 9s));
  EXPECT_THAT(table, HasSubstr("c.yaml: switch, 4 nodes, classes none; data internal, access "
                               "disperse; queue fcfs, nodes sequential; seed 1\n"));
  EXPECT_THAT(table, HasSubstr("<a>              2      1.000      9.000       1.00        2.00"));
  EXPECT_THAT(table, HasSubstr("1.500\n"));  // of each task, in writes
  EXPECT_THAT(table, HasSubstr("node 0 writes  953.7 MiB/s         4.66    50.0\n"));
  EXPECT_THAT(table,
              HasSubstr("all together 10.000 s; in the mean waiting 1.000 s, running 9.000 s"));
}

// Nine years each: their sum is longer than 64 bits of nanoseconds can say.
TEST(ClusterReport, MeansOfManyLongOnesAreRight) {
  constexpr auto kLong = 24h * 365 * 9;
  FinishedCluster run = a_run("c.yaml", kLong);
  sim::ClusterApplicationResult& first = run.result.applications[0];
  first.tasks = 100;
  first.tally.times = {};
  for (int task = 0; task < 100; ++task) first.tally.time(sim::Step::write) += kLong;
  const sim::ClusterApplicationResult one = first;
  run.result.applications.assign(100, one);
  const std::string table = to_table(run);
  EXPECT_THAT(table, HasSubstr("in the mean waiting 1.000 s, running 283824000.000 s"));
  EXPECT_THAT(table, HasSubstr(" 283824000.000\n")) << "of each task, in writes";
}

TEST(ClusterReport, AComparisonMatchesApplicationsByName) {
  FinishedCluster after = a_run("after.yaml", 18s);
  after.result.applications.push_back(after.result.applications[0]);
  after.result.applications.back().name = "b";
  const std::string text = to_comparison(a_run("before.yaml", 9s), after);
  EXPECT_THAT(text, HasSubstr("A: before.yaml: switch"));
  EXPECT_THAT(text, HasSubstr("B: after.yaml: switch"));
  EXPECT_THAT(text, HasSubstr("9.000       18.000  2.00"));
  EXPECT_THAT(text, HasSubstr("b                      -"));
  EXPECT_THAT(text, HasSubstr("all together A 10.000 s, B 19.000 s, B/A 1.90\n"));
}

TEST(ClusterReport, JsonHasEveryLinkThatCarriedAnything) {
  const std::array<FinishedCluster, 1> runs = {a_run("c.yaml", 9s)};
  const auto json = nlohmann::json::parse(to_json(runs));
  EXPECT_EQ(json[0]["makespan_s"], 10.0);
  EXPECT_EQ(json[0]["place"], "internal");
  EXPECT_EQ(json[0]["applications"][0]["waiting_s"], 1.0);
  EXPECT_EQ(json[0]["applications"][0]["write_s"], 1.5);
  EXPECT_EQ(json[0]["applications"][0]["remote_bytes"], 2 * kGiB);
  EXPECT_EQ(json[0]["links"][0]["busy_percent"], 50.0);
}

TEST(ClusterReport, APictureShowsWhenApplicationsWaitedAndRan) {
  const std::array<FinishedCluster, 1> runs = {a_run("c.yaml", 8s)};
  const std::string svg = to_svg(runs);
  EXPECT_THAT(svg, HasSubstr("&lt;a&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("<a>")));
  // One of ten seconds is 57 of 570 pixels.
  EXPECT_THAT(svg, HasSubstr("<rect x='207' y='34' width='57' height='11' fill='#cccccc'/>"));
  EXPECT_THAT(svg, HasSubstr("<rect x='264' y='34' width='456' height='11' fill='#0072b2'/>"));
  EXPECT_THAT(svg, HasSubstr(">10.000 s</text>"));
}

}  // namespace
}  // namespace vpfs::sim_tool
