#include "tools/sim/report.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace vpfs::sim_tool {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

FinishedRun a_run(const std::string& name, std::uint64_t mib_of_a) {
  FinishedRun run{.name = name, .scenario = {}, .policy = "sfq", .result = {}};
  run.scenario.device = {.bandwidth = {100 * kMiB}, .per_request = 100us, .parallelism = 1};
  run.scenario.duration = 2s;
  run.scenario.interval = 1s;
  sim::ApplicationResult a{.name = "a", .virtual_pfs = "first", .promise = {.weight = 3}};
  a.moved = {mib_of_a * kMiB};
  a.requests = mib_of_a;
  a.course = {{mib_of_a * kMiB}, {0}};
  a.held.record(1ms);
  a.latency.record(2ms);
  sim::ApplicationResult b{.name = "<b>", .virtual_pfs = "default"};
  b.moved = {50 * kMiB};
  b.course = {{0}, {50 * kMiB}};
  run.result.applications = {a, b};
  return run;
}

TEST(SimReport, ATableShowsSharesBesideWhatWeightsPromise) {
  const std::string table = to_table(a_run("s.yaml", 150));
  EXPECT_THAT(table, HasSubstr("policy sfq, 1 server of 100 MiB/s, 100 us a request, 1 at once"));
  EXPECT_THAT(table, HasSubstr("a            first         75.0     75.0        75.0"));
  EXPECT_THAT(table, HasSubstr("<b>          default       25.0     25.0        25.0"));
  EXPECT_THAT(table, HasSubstr("all together 100.0 MiB/s"));
}

// A scenario may be of another author.
TEST(SimReport, NamesDoNotSteerATerminal) {
  FinishedRun run = a_run("s\x1b]0;.yaml", 150);
  run.result.applications[0].name = "\x1b[2Ja\nb";
  EXPECT_THAT(to_table(run), Not(HasSubstr("\x1b")));
  EXPECT_THAT(to_table(run), HasSubstr(R"(\x1B[2Ja\x0Ab)"));
}

TEST(SimReport, AnApplicationIsEntitledToNothingWhileItIsAway) {
  FinishedRun run = a_run("s.yaml", 150);
  run.result.applications[1].course = {{50 * kMiB}, {0}};
  run.result.applications[1].promise.weight = 2;
  EXPECT_THAT(to_table(run), HasSubstr("75.0        60.0"));
  run.result.applications[1].course = {{0}, {50 * kMiB}};
  EXPECT_THAT(to_table(run), HasSubstr("75.0        75.0"));
}

TEST(SimReport, ARateBoundsWhatAnApplicationIsEntitledTo) {
  FinishedRun run = a_run("s.yaml", 150);
  run.result.applications[1].course = {{50 * kMiB}, {0}};
  run.result.applications[1].promise.most = {20 * kMiB};
  EXPECT_THAT(to_table(run), HasSubstr("75.0        90.0"));
  EXPECT_THAT(to_table(run), HasSubstr("25.0        10.0"));
}

// Two applications of one virtual PFS use different numbers of servers.
TEST(SimReport, EachApplicationHasThePromiseOfItsOwnServers) {
  FinishedRun run = a_run("s.yaml", 150);
  sim::ApplicationResult& b = run.result.applications[1];
  b.virtual_pfs = "first";
  b.course = {{50 * kMiB}, {0}};
  sim::ApplicationResult c{.name = "c", .virtual_pfs = "other"};
  c.moved = {200 * kMiB};
  c.course = {{200 * kMiB}, {0}};
  // By its weight, "first" has 300 of 400 MiB, and at most 100 on the servers of b.
  b.promise = {.weight = 3, .most = BytesPerSecond{100 * kMiB}};
  run.result.applications.push_back(c);
  EXPECT_THAT(to_table(run), HasSubstr("75.0     37.5        75.0"));
  EXPECT_THAT(to_table(run), HasSubstr("25.0     12.5        25.0"));
  EXPECT_THAT(to_table(run), HasSubstr("100.0     50.0        25.0"));
}

// This takes minutes if each application is compared with all others for each of them.
TEST(SimReport, ManyApplicationsTakeReasonableTime) {
  FinishedRun run = a_run("s.yaml", 150);
  const sim::ApplicationResult one = run.result.applications[0];
  run.result.applications.assign(6000, one);
  for (std::size_t i = 0; i < run.result.applications.size(); ++i) {
    run.result.applications[i].virtual_pfs = "pfs-" + std::to_string(i);
  }
  EXPECT_THAT(to_table(run), HasSubstr("pfs-5999"));
}

TEST(SimReport, AComparisonMatchesApplicationsByName) {
  FinishedRun after = a_run("after.yaml", 75);
  after.result.applications[1].name = "c";
  const std::string text = to_comparison(a_run("before.yaml", 150), after);
  EXPECT_THAT(text, HasSubstr("A: before.yaml"));
  EXPECT_THAT(text, HasSubstr("B: after.yaml"));
  EXPECT_THAT(text, HasSubstr("a               75.0     37.5  0.50"));
  EXPECT_THAT(text, HasSubstr("<b>             25.0        -     -"));
  EXPECT_THAT(text, HasSubstr("c                  -     25.0     -"));
}

TEST(SimReport, JsonHasTheCourseOverTime) {
  const std::array<FinishedRun, 1> runs = {a_run("s.yaml", 150)};
  const auto json = nlohmann::json::parse(to_json(runs));
  const auto& a = json[0]["applications"][0];
  EXPECT_EQ(a["course_mib_per_s"], nlohmann::json::array({150.0, 0.0}));
  EXPECT_EQ(a["share_percent"], 75.0);
  EXPECT_EQ(a["latency_us"]["max"], 2000.0);
}

TEST(SimReport, APictureHasALineForEachApplicationAndEscapesItsName) {
  const std::array<FinishedRun, 2> runs = {a_run("one.yaml", 150), a_run("two.yaml", 10)};
  const std::string svg = to_svg(runs);
  std::size_t lines = 0;
  for (std::size_t at = svg.find("<polyline"); at != std::string::npos;
       at = svg.find("<polyline", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 4U);
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  // 150 of 200 MiB/s in the first second, and nothing in the second one.
  EXPECT_THAT(svg, HasSubstr("points='190.0,79.0 430.0,214.0 '"));
}

// 3:1 of 200 MiB in the first second. In the second one the first application does nothing.
TEST(SimReport, APictureHasADashedLineOfWhatEachIsEntitledTo) {
  FinishedRun run = a_run("s.yaml", 150);
  run.result.applications[1].course = {{50 * kMiB}, {50 * kMiB}};
  const std::string svg = to_svg(std::array{run});
  EXPECT_THAT(svg, HasSubstr("d='M70.0,79.0H310.0 ' fill='none' stroke='#0072b2'"));
  EXPECT_THAT(svg, HasSubstr("d='M70.0,169.0H310.0 M310.0,169.0H550.0 '"));
  EXPECT_THAT(svg, HasSubstr(">entitled</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("coordinator away")));
}

TEST(SimReport, APictureShowsWhenTheCoordinatorIsAway) {
  FinishedRun run = a_run("s.yaml", 150);
  run.scenario.warm_up = 1s;
  run.scenario.coordinator.emplace();
  // From the middle of the warm-up, which is not measured, to a quarter of the measured time.
  run.scenario.coordinator->away = {.from = 500ms, .until = 1500ms};
  const std::string svg = to_svg(std::array{run});
  EXPECT_THAT(svg, HasSubstr("<rect x='70.0' y='34' width='120.0' height='180' fill='#eee'/>"));
  EXPECT_THAT(svg, HasSubstr("coordinator away"));
  run.scenario.coordinator->away = {.from = 100ms, .until = 900ms};
  EXPECT_THAT(to_svg(std::array{run}), Not(HasSubstr("coordinator away"))) << "not measured";
}

}  // namespace
}  // namespace vpfs::sim_tool
