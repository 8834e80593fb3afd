// vpfsctl selftest at a real vpfs-proxy in front of vpfs-server.

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/system_clock.h"
#include "client/orangefs/file_system.h"
#include "test/support/clock/by_clock.h"
#include "test/support/load_run.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"
#include "test/support/run_task.h"
#include "test/tools/vpfsctl/proxies.h"

namespace vpfs::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SelftestProgram : public ::testing::Test {
 protected:
  SelftestProgram()
      : proxy_({.upstream = server_port_.number(),
                .workers = 2,
                .depth = 4,
                .depth_bytes = "4 MiB",
                .control =
                    fmt::format("socket: {0}/px.sock, name: stor0", directory_.path().string())}) {
    const std::string config = directory_.write(
        "server.yaml",
        fmt::format("file_system: {{name: vpfs, id: 1234}}\n"
                    "servers: [{{alias: s0, addresses: ['tcp://{}', 'tcp-px://127.0.0.1:{}']}}]\n"
                    "storage: {{engine: memory}}\n"
                    "device: {{bandwidth: 100 MiB/s, per_request: 200 us, parallelism: 2}}\n",
                    server_port_.address(), proxy_.port()));
    server_.emplace(std::vector<std::string>{program("vpfs-server"), "--config", config});
    if (!server_->wait_for_line("ready on")) throw std::runtime_error(server_->errors());
  }

  [[nodiscard]] std::string on() const {
    return fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxy_.port());
  }
  [[nodiscard]] std::string direct() const {
    return fmt::format("tcp://{}/vpfs", server_port_.address());
  }
  [[nodiscard]] std::vector<std::string> words(std::vector<std::string> more) const {
    std::vector<std::string> all = {"--proxy", directory_.path() / "px.sock", "selftest"};
    all.insert(all.end(), {"--directory", "/test", "--size", "64KiB"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] Outcome selftest(const std::vector<std::string>& more) const {
    return vpfsctl(words(more));
  }
  [[nodiscard]] std::string rules() const {
    return vpfsctl({"--proxy", directory_.path() / "px.sock", "rule", "list", "--names"}).output;
  }
  [[nodiscard]] std::vector<std::string> files() const {
    asio::io_context loop;
    const SystemClock clock;
    const auto address = client::parse_mount_address(direct());
    auto mounted = run_task(loop, client::FileSystem::mount(*address, {}, clock));
    if (!mounted) throw std::runtime_error(mounted.error().message);
    std::vector<std::string> names;
    const auto directory = run_task(loop, (*mounted)->resolve("/test"));
    if (directory) {
      const auto entries = run_task(loop, (*mounted)->readdir(*directory));
      for (const client::DirectoryEntry& each : *entries) names.push_back(each.name);
    }
    (*mounted)->close();
    return names;
  }

  [[nodiscard]] Process start() const {
    std::vector<std::string> command = {program("vpfsctl")};
    for (std::string& each : words({"--on", on(), "--minutes", "0.2"})) {
      command.push_back(std::move(each));
    }
    return Process(command);
  }
  // Kills a self-test while it has a file.
  void kill_one() {
    Process killed = start();
    for (int i = 0; i < 500 && files().empty(); ++i) std::this_thread::sleep_for(10ms);
    killed.kill();
    ASSERT_THAT(files(), ElementsAre("vpfs-selftest-stor0-a.0"));
  }

  TemporaryDirectory directory_;
  ReservedPort server_port_;
  ProxyProcess proxy_;
  std::optional<Process> server_;
};

TEST_F(SelftestProgram, FindsWhatTheServerDoesAndThatSharesHold) {
  const std::string report = directory_.path() / "report.json";
  const std::string plot = directory_.path() / "plot.svg";
  const Outcome outcome = selftest(
      {"--on", on(), "--direct", direct(), "--minutes", "0.1", "--report", report, "--plot", plot});
  EXPECT_LE(outcome.code, 1) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("2:1 holds"));
  EXPECT_THAT(outcome.output, HasSubstr("4:1 holds"));
  EXPECT_THAT(outcome.output, HasSubstr("the proxy adds"));
  const auto json = nlohmann::json::parse(read_text(report));
  const auto& findings = json["findings"];
  // A machine that is too slow for the load gives it less.
  EXPECT_LT(findings["limit"]["error"], 0.25) << findings.dump(1) << kByClock;
  // Two requests are served at a time, so many more in flight help nothing.
  EXPECT_LE(findings["depth"]["enough"], 32) << findings.dump(1) << kByClock;
  EXPECT_GT(findings["depth"]["most_mib_per_s"], 50) << kByClock;
  EXPECT_TRUE(read_text(plot).starts_with("<svg "));
  EXPECT_THAT(rules(), Not(HasSubstr("selftest")));
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(SelftestProgram, WhatAKilledOneLeftIsRemovedByTheNextOrOnDemand) {
  kill_one();
  EXPECT_THAT(rules(), HasSubstr("vpfs-selftest-a\n"));
  // Its disk is full, which is said after the verdict.
  const Outcome next = selftest({"--on", on(), "--minutes", "0.02", "--report", "/dev/full"});
  EXPECT_EQ(next.code, 1);
  EXPECT_THAT(next.errors, HasSubstr("/dev/full: cannot be written: No space left on device"));
  EXPECT_THAT(next.output, HasSubstr("self-test of stor0"));
  EXPECT_THAT(rules(), Not(HasSubstr("selftest")));
  EXPECT_THAT(files(), IsEmpty());

  kill_one();
  const Outcome clean = selftest({"--on", on(), "--clean"});
  EXPECT_EQ(clean.code, 0) << clean.errors;
  EXPECT_THAT(clean.output, HasSubstr("2 rules have ended"));
  EXPECT_THAT(rules(), Not(HasSubstr("selftest")));
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(SelftestProgram, ASignalEndsItAndLeavesNothing) {
  Process stopped = start();
  ASSERT_TRUE(stopped.wait_for_line("1 in flight")) << stopped.errors();
  EXPECT_EQ(stopped.stop().code, 1);
  EXPECT_THAT(stopped.errors(), HasSubstr("stopped by a signal"));
  EXPECT_THAT(rules(), Not(HasSubstr("selftest")));
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(SelftestProgram, ABusySystemIsLeftAloneUnlessToldOtherwise) {
  LoadRun others({.file_system = on(),
                  .applications = "  - {name: others, size: 256 KiB, outstanding: 16, "
                                  "file_size: 4 MiB}\n",
                  .verify = false});
  ASSERT_TRUE(others.wait_until_begun());
  const std::string report = directory_.write("report.json", "an earlier one");
  const Outcome refused = selftest({"--on", on(), "--minutes", "0.02", "--report", report});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("stor0 is busy: others do"));
  EXPECT_EQ(read_text(report), "an earlier one");
  EXPECT_FALSE(std::filesystem::exists(report + ".unfinished"));
  const Outcome told = selftest(
      {"--on", on(), "--minutes", "0.03", "--busy", "--share", "40MiB/s", "--report", report});
  EXPECT_THAT(told.output, HasSubstr("self-test of stor0")) << told.errors;
  const auto json = nlohmann::json::parse(read_text(report));
  for (const auto& each : json["measurements"]) {
    // The buckets have a tenth of a second of the two.
    const double burst = 4 / each["duration_s"].get<double>();
    EXPECT_LE(each["mib_per_s"], 40 + burst) << each.dump(1) << kByClock;
  }
  others.expect_good_stop();
}

TEST_F(SelftestProgram, SaysWhatIsWrongWithAnAddress) {
  const ReservedPort nothing;
  const std::string nowhere = fmt::format("tcp-px://{}/vpfs", nothing.address());
  const Outcome unreachable = selftest({"--on", nowhere, "--minutes", "0.02"});
  EXPECT_EQ(unreachable.code, 1);
  EXPECT_THAT(unreachable.errors, HasSubstr(nothing.address()));
  const Outcome past = selftest({"--on", direct(), "--minutes", "0.02"});
  EXPECT_EQ(past.code, 1);
  EXPECT_THAT(past.errors, HasSubstr("does not lead through it"));
  const Outcome both =
      selftest({"--on", on(), "--direct", fmt::format("{}", on() + "/"), "--minutes", "0.02"});
  EXPECT_NE(both.code, 0);
  const Outcome none = vpfsctl({"--proxy", directory_.path() / "no.sock", "selftest", "--on", on(),
                                "--directory", "/test", "--minutes", "0.02"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(rules(), Not(HasSubstr("selftest")));
}

TEST_F(SelftestProgram, AFileThatCannotBeWrittenIsSaidBeforeTheMeasurements) {
  const Outcome missing = selftest({"--on", on(), "--report", "/no-such-folder/report.json"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.errors,
              HasSubstr("/no-such-folder/report.json: cannot be written: No such file"));
}

}  // namespace
}  // namespace vpfs::test
