#include "tools/load/report.h"

#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace vpfs::load {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

LoadSettings settings() {
  LoadSettings made;
  made.file_system = "tcp://127.0.0.1:1/vpfs";
  made.warm_up = 1s;
  made.duration = 2500ms;
  made.applications = {{.name = "a", .jobid = "job1"}, {.name = "b"}};
  return made;
}

// The result of a run that was ended at `stopped`.
RunResult result(const LoadSettings& made, std::optional<Duration> stopped = {}) {
  RunEnd end(made.run_length());
  Meter meter(made.warm_up, end, made.interval);
  meter.completed(999ms, 1ms, kMiB);   // warm-up
  meter.completed(1000ms, 1ms, kMiB);  // first bin
  meter.completed(1500ms, 2ms, kMiB);  //
  if (stopped) end.end_at(*stopped);
  meter.completed(3400ms, 4ms, 3 * kMiB);  // third bin, which is half as long
  meter.completed(3500ms, 1ms, kMiB);      // too late
  meter.verified(256, 1);
  RunResult made_result;
  made_result.duration = end.get() - made.warm_up;
  made_result.ended_early = stopped.has_value();
  made_result.totals.resize(2);
  meter.add_to(made_result.totals[0]);
  Meter(made.warm_up, end, made.interval).add_to(made_result.totals[1]);
  made_result.cpu = {.user = 0.5, .system = 0.25};
  return made_result;
}

TEST(Report, JsonHoldsTheMeasuredWindowOnly) {
  const LoadSettings made = settings();
  const Json json = Json::parse(to_json(made, result(made)));
  const Json& a = json["applications"][0];
  EXPECT_EQ(a["bytes"], 5 * kMiB);
  EXPECT_EQ(a["requests"], 3);
  EXPECT_DOUBLE_EQ(a["mib_per_s"], 2.0);
  EXPECT_DOUBLE_EQ(a["ops_per_s"], 1.2);
  EXPECT_DOUBLE_EQ(a["last_s"], 2.4);
  EXPECT_DOUBLE_EQ(json["total_mib_per_s"], 2.0);
  EXPECT_DOUBLE_EQ(json["cpu_seconds"]["system"], 0.25);
  EXPECT_EQ(a["timeline"].size(), 3U);
  EXPECT_DOUBLE_EQ(a["timeline"][0]["t"], 1.0);
  EXPECT_DOUBLE_EQ(a["timeline"][0]["mib_per_s"], 2.0);
  EXPECT_DOUBLE_EQ(a["timeline"][1]["mib_per_s"], 0.0);
  EXPECT_DOUBLE_EQ(a["timeline"][1]["longest_us"], 0.0);
  EXPECT_DOUBLE_EQ(a["timeline"][2]["t"], 2.5);
  EXPECT_DOUBLE_EQ(a["timeline"][2]["mib_per_s"], 6.0);
}

TEST(Report, SettingsSayWhoseTheFilesWere) {
  LoadSettings made = settings();
  made.uid = 1000;
  made.gid = 100;
  made.applications[1].uid = 1001;
  made.applications[1].node = "n1";
  const Json json = Json::parse(to_json(made, result(made)))["settings"];
  EXPECT_EQ(json["uid"], 1000);
  EXPECT_EQ(json["gid"], 100);
  EXPECT_FALSE(json["applications"][0].contains("node"));
  EXPECT_EQ(json["applications"][1]["uid"], 1001);
  EXPECT_EQ(json["applications"][1]["node"], "n1");
}

TEST(Report, ARunThatIsEndedEarlyHasItsOwnLength) {
  const LoadSettings made = settings();
  const Json json = Json::parse(to_json(made, result(made, 2600ms)));
  EXPECT_EQ(json["ended_early"], true);
  EXPECT_DOUBLE_EQ(json["duration_s"], 1.6);
  EXPECT_DOUBLE_EQ(json["settings"]["duration_s"], 2.5);
  const Json& a = json["applications"][0];
  EXPECT_EQ(a["requests"], 2) << "not what was completed after its end";
  EXPECT_DOUBLE_EQ(a["mib_per_s"], 1.25);
  ASSERT_EQ(a["timeline"].size(), 2U);
  EXPECT_DOUBLE_EQ(a["timeline"][1]["t"], 1.6);
}

TEST(Report, ARunThatIsEndedBeforeItsMeasurementHasRatesOfZero) {
  const LoadSettings made = settings();
  RunEnd end(made.run_length());
  end.end_at(500ms);
  RunResult nothing{.ended_early = true};
  nothing.totals.resize(2);
  Meter(made.warm_up, end, made.interval).add_to(nothing.totals[0]);
  const Json json = Json::parse(to_json(made, nothing));
  EXPECT_EQ(json["duration_s"], 0.0);
  EXPECT_EQ(json["total_mib_per_s"], 0.0);
  EXPECT_EQ(json["applications"][0]["ops_per_s"], 0.0);
  EXPECT_EQ(json["applications"][0]["timeline"].size(), 0U);
}

TEST(Report, JsonHasEveryPromisedField) {
  const LoadSettings made = settings();
  const Json json = Json::parse(to_json(made, result(made)));
  for (const char* key : {"settings", "duration_s", "ended_early", "cpu_seconds", "applications",
                          "total_mib_per_s", "total_ops_per_s"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  ASSERT_EQ(json["applications"].size(), 2U);
  for (const Json& each : json["applications"]) {
    for (const char* key : {"name", "jobid", "bytes", "requests", "errors", "verified_blocks",
                            "verify_failures", "mib_per_s", "ops_per_s", "timeline"}) {
      EXPECT_TRUE(each.contains(key)) << key;
    }
    for (const char* key : {"mean", "p50", "p90", "p99", "p999", "max", "histogram"}) {
      EXPECT_TRUE(each["latency_us"].contains(key)) << key;
    }
  }
  std::uint64_t counted = 0;
  for (const Json& bucket : json["applications"][0]["latency_us"]["histogram"]) {
    counted += bucket[1].get<std::uint64_t>();
  }
  EXPECT_EQ(counted, 3U);
}

TEST(Report, NoPercentileIsAboveTheMaximum) {
  const LoadSettings made = settings();
  RunEnd end(made.run_length());
  Meter meter(made.warm_up, end, made.interval);
  for (int i = 0; i < 100; ++i) meter.completed(made.warm_up, 70'001ns, 1);
  RunResult run{.duration = made.duration};
  run.totals.resize(2);
  meter.add_to(run.totals[0]);
  const Json latency = Json::parse(to_json(made, run))["applications"][0]["latency_us"];
  for (const char* key : {"p50", "p90", "p99", "p999", "max"}) {
    EXPECT_DOUBLE_EQ(latency[key], 70.001) << key;
  }
}

TEST(Report, AFailureMakesTheRunBad) {
  const LoadSettings made = settings();
  RunResult bad = result(made);
  EXPECT_FALSE(bad.good());
  bad.totals[0].verify_failures = 0;
  EXPECT_TRUE(bad.good());
  bad.totals[1].errors = 1;
  EXPECT_FALSE(bad.good());
}

TEST(Report, TheLiveLineShowsWhatIsNew) {
  const std::string line = live_line(settings(), {{.bytes = kMiB, .requests = 1}, {}},
                                     {{.bytes = 5 * kMiB, .requests = 5}, {.errors = 3}}, 3s, 2s);
  EXPECT_EQ(line,
            "   3.0 s  a 2.0 MiB/s 2 op/s  b 0.0 MiB/s 0 op/s (3 errors)  total 2.0 MiB/s 2 op/s");
}

}  // namespace
}  // namespace vpfs::load
