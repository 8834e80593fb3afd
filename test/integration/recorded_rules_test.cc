// What a recording of one configuration says of another, beside what that one then does.

#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/clock/by_clock.h"
#include "test/support/load_run.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using Json = nlohmann::json;

class RecordedRules : public ::testing::Test {
 protected:
  RecordedRules() : proxy_(settings(2, 1)) {
    const std::string config = directory_.write(
        "server.yaml",
        fmt::format("file_system: {{name: vpfs, id: 1234}}\n"
                    "servers: [{{alias: s0, addresses: ['tcp://{}', 'tcp-px://127.0.0.1:{}']}}]\n"
                    "storage: {{engine: memory}}\n"
                    "device: {{bandwidth: 50 MiB/s}}\n",
                    server_port_.address(), proxy_.port()));
    server_.emplace(std::vector<std::string>{program("vpfs-server"), "--config", config});
    if (!server_->wait_for_line("ready on")) throw std::runtime_error(server_->errors());
  }

  ProxySettings settings(int alice, int bob) const {
    return {.upstream = server_port_.number(),
            .depth = 8,
            .control = fmt::format("socket: {}/px.sock", directory_.path().string()),
            .virtual_pfs = fmt::format("alice: {{weight: {}}}, bob: {{weight: {}}}", alice, bob),
            .rules =
                "[{match: {hint: {jobid: alice}}, virtual_pfs: alice},"
                " {match: {hint: {jobid: bob}}, virtual_pfs: bob}]"};
  }
  void run(std::vector<std::string> words) {
    words.insert(words.begin(), program("vpfsctl"));
    words.insert(words.end(), {"--proxy", directory_.path() / "px.sock"});
    Process ctl(words);
    const auto exit = ctl.wait();
    ASSERT_TRUE(exit && exit->ok()) << ctl.errors();
  }
  // What vpfs-sim says of a recording with the proxy's present configuration: shares by name.
  std::map<std::string, double> replayed(const std::string& recording) {
    const std::string json = directory_.path() / "replay.json";
    Process sim(
        {program("vpfs-sim"), "--replay", recording, "--config", proxy_.config(), "--json", json});
    const auto exit = sim.wait();
    EXPECT_TRUE(exit && exit->ok()) << sim.errors();
    std::ifstream in(json);
    std::map<std::string, double> shares;
    for (const Json& each : Json::parse(in)["virtual_pfs"]) {
      if (!each["after"].is_null()) shares[each["name"]] = each["after"]["share_percent"];
    }
    return shares;
  }
  // What `rule plan` says of a set of rules.
  Json planned(const std::string& set, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {program("vpfsctl"),
                                      "rule",
                                      "plan",
                                      "-f",
                                      directory_.write("rules.yaml", set),
                                      "--json",
                                      "--proxy",
                                      directory_.path() / "px.sock"};
    words.insert(words.end(), more.begin(), more.end());
    Process ctl(words);
    const auto exit = ctl.wait();
    EXPECT_TRUE(exit && exit->ok()) << ctl.errors();
    return Json::parse(ctl.output());
  }
  std::map<std::string, double> moved() {
    std::map<std::string, double> all;
    const Json status = proxy_.status();
    for (const Json& each : status["virtual_pfs"]) {
      all[each["name"]] = each["done_bytes"].get<double>();
    }
    return all;
  }
  // The shares that the proxy gives now, in percent.
  std::map<std::string, double> measured(std::chrono::seconds time) {
    const auto before = moved();
    std::this_thread::sleep_for(time);
    std::map<std::string, double> shares;
    double sum = 0;
    for (const auto& [name, bytes] : moved()) {
      shares[name] = bytes - before.at(name);
      sum += shares[name];
    }
    for (auto& [name, share] : shares) share *= 100 / sum;
    return shares;
  }

  TemporaryDirectory directory_;
  ReservedPort server_port_;
  ProxyProcess proxy_;
  std::optional<Process> server_;
};

TEST_F(RecordedRules, GiveWhatTheyWereSaidToGive) {
  const std::string recording = directory_.path() / "recording.json";
  LoadRun load({.file_system = fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxy_.port()),
                .applications = "  - {name: alice, jobid: alice, size: 64 KiB, outstanding: 16, "
                                "read_percent: 100, file_size: 4 MiB}\n"
                                "  - {name: bob, jobid: bob, size: 256 KiB, outstanding: 8, "
                                "read_percent: 50, file_size: 4 MiB}\n"});
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  run({"record", "start", "--size", "4MiB"});
  const auto now = measured(std::chrono::seconds(4));
  run({"record", "stop"});
  run({"record", "dump", recording});
  // The simulator agrees with what was, before it says what would be.
  auto same = replayed(recording);
  EXPECT_NEAR(same["alice"], now.at("alice"), 3) << kByClock;

  // A plan reads the same recording, where it is, and changes nothing.
  const Json plan = planned("virtual_pfs: {alice: {weight: 1}, bob: {weight: 3}}\nrules: []\n");
  EXPECT_TRUE(plan["check"]["is_close"].get<bool>()) << plan["check"];
  EXPECT_EQ(plan["differences"].size(), 2u) << plan["differences"];
  const Json part =
      planned("virtual_pfs: {alice: {weight: 1}, bob: {weight: 3}}\nrules: []\n", {"--last", "2s"});
  EXPECT_EQ(part["length_us"], 2'000'000);

  proxy_.reload(settings(1, 3));
  const auto said = replayed(recording);
  const auto live = measured(std::chrono::seconds(4));
  fmt::print("alice {:.1f} % before; said {:.1f} %, then {:.1f} %\n", now.at("alice"),
             said.at("alice"), live.at("alice"));
  for (const Json* each : {&plan, &part}) {
    for (const Json& row : (*each)["virtual_pfs"]) {
      EXPECT_NEAR(row["after"]["share_percent"].get<double>(), live.at(row["name"]), 3)
          << row << kByClock;
    }
  }
  EXPECT_LT(live.at("alice"), now.at("alice") - 20) << "the change is in force" << kByClock;
  EXPECT_NEAR(said.at("alice"), live.at("alice"), 3) << kByClock;
  EXPECT_NEAR(said.at("bob"), live.at("bob"), 3) << kByClock;
  load.expect_good_stop();
}

}  // namespace
}  // namespace vpfs::test
