#include "control/metrics/metrics.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/control/metrics/example_stats.h"
#include "test/control/metrics/exposition.h"
#include "test/support/places.h"

namespace vpfs::control {
namespace {

using test::Exposition;
using ::testing::IsEmpty;

Exposition exposition_of(const StatsReply& stats, std::size_t most = 1000) {
  Exposition found =
      test::read_exposition(metrics_text(stats, {.version = "1.2", .most_virtual_pfs = most}));
  EXPECT_THAT(found.problems, IsEmpty());
  return found;
}

Exposition::Labels pfs(const std::string& name) {
  return {{"virtual_pfs", name}};
}

VirtualPfs& add(StatsReply& stats, const std::string& name) {
  VirtualPfs& made = *stats.add_virtual_pfs();
  made.set_name(name);
  made.set_weight(1);
  return made;
}

// The file also is what the dashboard and the documents are checked against.
TEST(Metrics, ExampleIsAsInTheFile) {
  const std::filesystem::path file = test::source("test/data/metrics/example.prom");
  std::ostringstream expected;
  expected << std::ifstream(file).rdbuf();
  const std::string text = metrics_text(test::example_stats(), {.version = "0.1.0 (abc)"});
  if (std::getenv("VPFS_WRITE_EXAMPLE") != nullptr) std::ofstream(file) << text;
  EXPECT_EQ(text, expected.str());
}

TEST(Metrics, UnitsAreBytesAndSeconds) {
  const Exposition found = exposition_of(test::example_stats());
  const std::string job = "job-\"7\"\\n";
  EXPECT_EQ(found.value("vpfs_read_bytes_total", pfs(job)), 1'000'002);
  EXPECT_EQ(found.value("vpfs_held_seconds_total", {{"virtual_pfs", job}, {"cause", "limit"}}),
            1000.5);
  EXPECT_EQ(found.value("vpfs_wait_seconds", {{"virtual_pfs", job}, {"statistic", "p99"}}), 0.1);
  EXPECT_EQ(found.value("vpfs_oldest_wait_seconds", pfs(job)), 0.25);
  EXPECT_EQ(found.value("vpfs_target_latency_seconds", pfs(job)), 0.02);
  EXPECT_EQ(found.value("vpfs_shadow_held_seconds_total", {{"rule", "trial"}}), 8.5);
  EXPECT_EQ(found.value("vpfs_request_duration_seconds_sum",
                        {{"virtual_pfs", job}, {"operation", "write"}}),
            6000);
  EXPECT_EQ(found.value("vpfs_request_duration_seconds_count",
                        {{"virtual_pfs", job}, {"operation", "write"}}),
            1003);
}

TEST(Metrics, LimitThatIsNotSetHasNoSeriesButOneOfZeroHas) {
  const Exposition found = exposition_of(test::example_stats());
  EXPECT_EQ(found.count("vpfs_limit_bytes_per_second"), 2U) << "of the job only";
  EXPECT_EQ(found.value("vpfs_limit_bytes_per_second",
                        {{"virtual_pfs", "job-\"7\"\\n"}, {"source", "allocated"}}),
            0);
}

TEST(Metrics, EmptyStageHasItsOwnMetrics) {
  const Exposition found = exposition_of({});
  EXPECT_EQ(found.value("vpfs_connections"), 0);
  EXPECT_EQ(found.value("vpfs_all_read_bytes_total"), 0);
  EXPECT_EQ(found.count("vpfs_read_bytes_total"), 0U);
}

TEST(Metrics, OnlyRulesInShadowHaveWhatTheyWouldHold) {
  const Exposition found = exposition_of(test::example_stats());
  EXPECT_EQ(found.value("vpfs_rule_hits_total", {{"rule", "jobs"}}), 123);
  EXPECT_EQ(found.value("vpfs_rule_in_force", {{"rule", "jobs"}}), 1);
  EXPECT_EQ(found.value("vpfs_rule_in_force", {{"rule", "trial"}}), 0);
  EXPECT_EQ(found.count("vpfs_shadow_requests_total"), 1U);
  EXPECT_EQ(found.value("vpfs_shadow_requests_total", {{"rule", "trial"}}), 6);
}

TEST(Metrics, OthersAreSummedUpInGaugesAndHaveNoCounters) {
  StatsReply stats;
  for (int i = 0; i < 10; ++i) {
    VirtualPfs& each = add(stats, "job-" + std::to_string(i));
    each.mutable_queued()->set_requests(1U << i);
    each.mutable_read()->set_bytes(1'000);
    each.set_cost_done(static_cast<std::uint64_t>(i));
  }
  const Exposition found = exposition_of(stats, 3);
  EXPECT_EQ(found.count("vpfs_read_bytes_total"), 3U);
  EXPECT_EQ(found.count("vpfs_queue_requests"), 4U);
  EXPECT_EQ(found.value("vpfs_queue_requests", pfs("job-9")), 512);
  EXPECT_EQ(found.value("vpfs_queue_requests", pfs("(others)")), 127);
  EXPECT_EQ(found.value("vpfs_virtual_pfs", {{"shown", "no"}}), 7);
  EXPECT_EQ(found.value("vpfs_all_read_bytes_total"), 10'000);
}

// A stage whose jobs come and go, of which few are shown: retired ones hand their counters on.
TEST(Metrics, NoCounterGoesDownWhileVirtualPfsesComeAndGo) {
  std::mt19937_64 engine(5);
  StatsReply stats;
  add(stats, "default");
  std::map<std::string, std::map<Exposition::Labels, double>> before;
  std::size_t made = 0;
  std::size_t compared = 0;
  for (int round = 0; round < 60; ++round) {
    stats.set_at(stats.at() + 100);
    for (VirtualPfs& each : *stats.mutable_virtual_pfs()) {
      if (engine() % 2 == 0) continue;
      Amount& read_amount = *each.mutable_read();
      read_amount.set_requests(read_amount.requests() + engine() % 100);
      read_amount.set_bytes(read_amount.bytes() + engine() % 100'000);
      each.set_held_share_us(each.held_share_us() + engine() % 1'000'000);
      each.set_cost_done(each.cost_done() + engine() % 100'000);
      each.set_snapshot_at(stats.at());
    }
    add(stats, "job-" + std::to_string(made++));
    if (stats.virtual_pfs_size() > 20) {
      const int gone = 1 + static_cast<int>(engine() % 19);
      const VirtualPfs& old = stats.virtual_pfs(gone);
      VirtualPfs& sums = *stats.mutable_retired();
      sums.mutable_read()->set_requests(sums.read().requests() + old.read().requests());
      sums.mutable_read()->set_bytes(sums.read().bytes() + old.read().bytes());
      sums.set_held_share_us(sums.held_share_us() + old.held_share_us());
      sums.set_cost_done(sums.cost_done() + old.cost_done());
      stats.set_virtual_pfs_retired(stats.virtual_pfs_retired() + 1);
      stats.mutable_virtual_pfs()->DeleteSubrange(gone, 1);
    }
    const Exposition now = exposition_of(stats, 8);
    EXPECT_LE(now.count("vpfs_read_bytes_total"), 8U);
    for (const auto& [name, series] : now.series) {
      if (now.families.contains(name) && now.families.at(name).type != "counter") continue;
      for (const auto& [labels, value] : series) {
        const auto& known = before[name];
        if (const auto was = known.find(labels); was != known.end()) {
          EXPECT_GE(value, was->second) << name << " in round " << round;
          ++compared;
        }
        before[name][labels] = value;
      }
    }
  }
  EXPECT_GT(compared, 3'000U);
}

TEST(Metrics, NamesOfClientsCannotBreakTheFormat) {
  std::mt19937_64 engine(6);
  StatsReply stats;
  for (int i = 0; i < 200; ++i) {
    std::string name;
    for (std::uint64_t size = engine() % 20; size > 0; --size) {
      name += static_cast<char>("\\\"\n{},= a\x01\x7f\xff\xc3#"[engine() % 14]);
    }
    VirtualPfs& each = add(stats, name);
    each.set_jobid(name);
    each.mutable_wait()->set_reason(name);
    stats.add_rules()->set_name(name);
  }
  (void)exposition_of(stats, 50);
  (void)exposition_of(stats);
}

TEST(Metrics, PromtoolFindsNothingWrong) {
  if (std::system("command -v promtool >/dev/null") != 0) {
    GTEST_SKIP() << "promtool is not installed (Debian: prometheus)";
  }
  const std::string file = test::source("test/data/metrics/example.prom");
  EXPECT_EQ(std::system(("promtool check metrics < " + file).c_str()), 0);
}

TEST(Metrics, ThousandVirtualPfsesAreAFewMegabytes) {
  StatsReply stats;
  for (int i = 0; i < 2'000; ++i) add(stats, "job-" + std::to_string(i));
  const std::string text = metrics_text(stats, {.version = "1"});
  EXPECT_LT(text.size(), 4U << 20);
}

}  // namespace
}  // namespace vpfs::control
