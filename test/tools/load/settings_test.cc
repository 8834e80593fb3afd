#include "tools/load/settings.h"

#include <string>

#include <gtest/gtest.h>

#include "test/support/places.h"
#include "test/support/process.h"

namespace vpfs::load {
namespace {

using namespace std::chrono_literals;

LoadSettings read(const std::string& text, ConfigErrors& errors, const Overrides& overrides = {}) {
  return read_settings(text, overrides, errors);
}

std::string complaints(const std::string& text) {
  ConfigErrors errors("load.yaml");
  (void)read(text, errors);
  return errors.to_string();
}

TEST(LoadSettings, AMistakeOfTheCommandLineIsNotTheFiles) {
  ConfigErrors errors("load.yaml");
  (void)read("file_system: tcp://127.0.0.1:1/vpfs\napplications: [{name: a}]\n", errors,
             {.file_system = "nowhere"});
  EXPECT_TRUE(errors.to_string().starts_with("--file-system: ")) << errors.to_string();
}

TEST(LoadSettings, TheExampleIsGood) {
  ConfigErrors errors("load.yaml");
  const LoadSettings settings = read(test::read_text(test::source("conf/load.yaml")), errors);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  EXPECT_EQ(std::get<client::MountAddress>(settings.mount).file_system, "vpfs");
  EXPECT_EQ(settings.run_length(), 11s);
  ASSERT_EQ(settings.applications.size(), 2U);
  EXPECT_EQ(settings.applications[0].outstanding, 8U);
  EXPECT_EQ(settings.applications[1].stop, 11s);
  EXPECT_EQ(settings.applications[1].burst->length, 1s);
}

TEST(LoadSettings, TheCommandLineWins) {
  ConfigErrors errors("load.yaml");
  const Overrides overrides{.file_system = "tcp-px://127.0.0.1:9/other",
                            .duration = 3s,
                            .warm_up = 0s,
                            .interval = 100ms};
  const LoadSettings settings =
      read("file_system: tcp://127.0.0.1:1/vpfs\napplications: [{name: a}]\n", errors, overrides);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  EXPECT_EQ(std::get<client::MountAddress>(settings.mount).scheme, "tcp-px");
  EXPECT_EQ(settings.run_length(), 3s);
  EXPECT_EQ(settings.interval, 100ms);
}

TEST(LoadSettings, TheCommandLineHasTheBoundsOfTheFile) {
  ConfigErrors errors("load.yaml");
  const Overrides overrides{.duration = 25h, .warm_up = -1s, .interval = 1ns};
  (void)read("file_system: tcp://127.0.0.1:1/vpfs\napplications: [{name: a}]\n", errors, overrides);
  EXPECT_EQ(errors.to_string(),
            "--duration: is out of range: 1 ms to 24 h\n"
            "--warm-up: is out of range: 0 s to 24 h\n"
            "--interval: is out of range: 1 ms to 24 h\n");
}

// Each point takes memory from the start.
TEST(LoadSettings, ATimelineHasABound) {
  const auto problems = [](const std::string& keys, const Overrides& overrides = {}) {
    ConfigErrors errors("load.yaml");
    (void)read("file_system: tcp://127.0.0.1:1/vpfs\napplications: [{name: a}]\n" + keys, errors,
               overrides);
    return errors.to_string();
  };
  EXPECT_EQ(problems("duration: 24 h\ninterval: 1 s\n"), "");
  EXPECT_EQ(problems("duration: 24 h\ninterval: 1 ms\n"),
            "load.yaml:4: interval: makes more than 100000 points of the run\n");
  EXPECT_EQ(problems("duration: 24 h\n", {.interval = 1ms}),
            "--interval: makes more than 100000 points of the run\n");
  EXPECT_EQ(problems("interval: 1 ms\n", {.duration = 24h}),
            "--duration: makes more than 100000 points of the run\n");
}

TEST(LoadSettings, AnApplicationsJobidIsItsNameUnlessSaidOtherwise) {
  ConfigErrors errors("load.yaml");
  const LoadSettings settings = read(
      "file_system: tcp://127.0.0.1:1/vpfs\napplications: [{name: a}, {name: b, jobid: \"\"}]\n",
      errors);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  EXPECT_EQ(settings.applications[0].jobid, "a");
  EXPECT_EQ(settings.applications[1].jobid, "");
}

TEST(LoadSettings, OfBeegfsHaveTargetsNodesAndManyConnections) {
  ConfigErrors errors("load.yaml");
  const LoadSettings settings = read(
      "file_system: beegfs://127.0.0.1:8003/101,103\nuid: 5\n"
      "applications: [{name: a, node: n}, {name: b, node: n, uid: 7}, {name: c, connections: 2}]\n",
      errors);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  EXPECT_EQ(std::get<client::StorageAddress>(settings.mount).targets,
            (std::vector<std::uint16_t>{101, 103}));
  EXPECT_EQ(settings.applications[0].connections, 12U);
  EXPECT_EQ(settings.applications[0].uid, 5U);
  EXPECT_EQ(settings.applications[1].uid, 7U);
  EXPECT_EQ(settings.applications[1].node, "n");
  EXPECT_EQ(settings.applications[2].connections, 2U);
}

TEST(LoadSettings, ANodeHasOneNumberOfConnectionsAndIsOnlyForBeegfs) {
  const std::string differing = complaints(
      "file_system: beegfs://127.0.0.1:8003/101\n"
      "applications: [{name: a, node: n}, {name: b, node: n, connections: 3}]\n");
  EXPECT_NE(differing.find("applications[1].connections: differs from that of a"),
            std::string::npos)
      << differing;
  const std::string elsewhere =
      complaints("file_system: tcp://127.0.0.1:1/vpfs\napplications: [{name: a, node: n}]\n");
  EXPECT_NE(elsewhere.find("applications[0].node"), std::string::npos) << elsewhere;
  const std::string no_target =
      complaints("file_system: beegfs://127.0.0.1:1\napplications: [{name: a}]\n");
  EXPECT_NE(no_target.find(
                "file_system: 'beegfs://127.0.0.1:1' is not a mount address: expected beegfs://"),
            std::string::npos)
      << no_target;
}

TEST(LoadSettings, ServersAndAmountsAreForFilesWithServersAndWholeRequests) {
  ConfigErrors errors("load.yaml");
  const LoadSettings settings = read(
      "file_system: tcp://127.0.0.1:1/vpfs\n"
      "applications: [{name: a, servers: [s1, s0], amount: 3 MiB}, {name: b}]\n",
      errors);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  EXPECT_EQ(settings.applications[0].servers, (std::vector<std::string>{"s1", "s0"}));
  EXPECT_EQ(settings.applications[0].amount, Bytes{3 * kMiB});
  EXPECT_TRUE(settings.applications[1].servers.empty());
  EXPECT_EQ(settings.applications[1].amount, Bytes{0});
  const std::string found = complaints(
      "file_system: beegfs://127.0.0.1:1/101\n"
      "applications: [{name: a, servers: [s1]}, {name: b, amount: 4 KiB}]\n");
  EXPECT_NE(found.find("applications[0].servers"), std::string::npos) << found;
  EXPECT_NE(found.find("applications[1].amount"), std::string::npos) << found;
}

TEST(LoadSettings, ARunUntilAllAreDoneNeedsAnEndOfEach) {
  const std::string common = "file_system: tcp://127.0.0.1:1/vpfs\nuntil_done: true\n";
  ConfigErrors errors("load.yaml");
  const LoadSettings settings =
      read(common + "applications: [{name: a, amount: 3 MiB}, {name: b, stop: 1 s}]\n", errors);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  EXPECT_TRUE(settings.until_done);
  const std::string found =
      complaints(common + "applications: [{name: a, amount: 3 MiB}, {name: b}]\n");
  EXPECT_NE(found.find("load.yaml:2: until_done: 'b' does not end"), std::string::npos) << found;
}

TEST(LoadSettings, ReportsAllErrorsAtOnceWithTheirLines) {
  const std::string text =
      "file_system: 127.0.0.1/vpfs\n"
      "verify: true\n"
      "durration: 5 s\n"
      "applications:\n"
      "  - name: a\n"
      "    size: 5000\n"
      "    read_percent: 101\n"
      "  - name: a\n"
      "    stop: 0 s\n"
      "    file_size: 1 KiB\n";
  const std::string found = complaints(text);
  for (const char* complaint :
       {"load.yaml:1: file_system", "load.yaml:3: durration", "load.yaml:6: applications[0].size",
        "load.yaml:7: applications[0].read_percent", "load.yaml:8: applications[1].name",
        "load.yaml:9: applications[1].stop", "load.yaml:10: applications[1].file_size"}) {
    EXPECT_NE(found.find(complaint), std::string::npos) << complaint << " in\n" << found;
  }
}

TEST(LoadSettings, NeedsAFileSystemAndAnApplication) {
  const std::string found = complaints("duration: 1 s\n");
  EXPECT_NE(found.find("file_system"), std::string::npos);
  EXPECT_NE(found.find("applications"), std::string::npos);
}

}  // namespace
}  // namespace vpfs::load
