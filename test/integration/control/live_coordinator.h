#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/places.h"
#include "test/support/process.h"
#include "test/tools/vpfsctl/proxies.h"

namespace vpfs::test {

// A real vpfs-coordinator with a port for administrators, which dials proxies.
class LiveCoordinator {
 public:
  // Names and sockets of the proxies. `more`: lines of the configuration.
  explicit LiveCoordinator(const std::vector<std::pair<std::string, std::string>>& proxies,
                           const std::string& more = "", const std::string& control = "") {
    std::string stages;
    for (const auto& [name, socket] : proxies) {
      stages += fmt::format("    - {{name: {}, address: {}}}\n", name, socket);
    }
    config_ = directory_.write("coordinator.yaml",
                               fmt::format("name: main\njournal: {0}/journal\n"
                                           "control: {{socket: {1}, audit: {0}/audit{2}}}\n{3}"
                                           "stages:\n  dial:\n{4}",
                                           directory_.path().string(), socket(),
                                           control.empty() ? "" : ", " + control, more, stages));
    start();
  }
  ~LiveCoordinator() {
    if (process_.running()) EXPECT_EQ(process_.stop().code, 0) << process_.errors();
  }
  LiveCoordinator(const LiveCoordinator&) = delete;
  LiveCoordinator& operator=(const LiveCoordinator&) = delete;

  void start() {
    process_ = Process({program("vpfs-coordinator"), "--config", config_});
    ASSERT_TRUE(process_.wait_for_line("ready")) << process_.errors();
  }
  void kill() { (void)process_.kill(); }
  void signal(int number) const { process_.signal(number); }
  [[nodiscard]] std::string errors() const { return process_.errors(); }
  [[nodiscard]] std::filesystem::path folder() const { return directory_.path(); }

  [[nodiscard]] std::string socket() const { return directory_.path() / "admin.sock"; }
  [[nodiscard]] Outcome ctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--coordinator", socket()});
    return vpfsctl(std::move(arguments));
  }
  // The command must succeed.
  void run(const std::vector<std::string>& arguments) const {
    const Outcome outcome = ctl(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  }
  // All answers: [{name, ok, error, data}].
  [[nodiscard]] nlohmann::json answers(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "--json");
    const Outcome outcome = ctl(std::move(arguments));
    const auto json = nlohmann::json::parse(outcome.output, nullptr, false);
    if (!json.is_discarded()) return json["proxies"];
    ADD_FAILURE() << outcome.output << outcome.errors;
    return {};
  }
  [[nodiscard]] nlohmann::json status() const { return answers({"status"})[0]["data"]; }
  // What the status says of a stage; null if it knows none of that name.
  [[nodiscard]] nlohmann::json stage(const std::string& name) const {
    for (const auto& each : status()["stages"]) {
      if (each["name"] == name) return each;
    }
    return {};
  }

 private:
  TemporaryDirectory directory_;
  std::string config_;
  Process process_{{"true"}};
};

}  // namespace vpfs::test
