// Types the commands of docs/walk-through.md as they are, in order, into one shell.

#include <array>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/clock/by_clock.h"
#include "test/support/places.h"
#include "test/support/process.h"
#include "test/support/replaced.h"

namespace vpfs::test {
namespace {

// Bandwidth of the two devices together, in MiB/s.
constexpr double kDevices = 200;
// Below this part of kDevices, the machine is the bottleneck, not the devices.
constexpr double kBusy = 0.7;

std::vector<std::string> commands_of(const std::string& guide) {
  constexpr std::string_view kPrompt = "    $ ";
  std::vector<std::string> commands;
  std::istringstream lines(guide);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kPrompt)) commands.push_back(line.substr(kPrompt.size()));
  }
  return commands;
}

// A copy of what the reader has, with free ports in place of those of the examples.
class WalkThrough : public ::testing::Test {
 protected:
  WalkThrough() {
    namespace fs = std::filesystem;
    for (std::size_t i = 0; i < kPorts.size(); ++i) free_.emplace_back();
    fs::create_directories(directory_.path() / "build/release");
    fs::create_directory_symlink(program_directory(), directory_.path() / "build/release/bin");
    fs::create_directory(directory_.path() / "conf");
    for (const auto& file : fs::directory_iterator(source("conf"))) {
      if (!file.is_regular_file()) continue;
      (void)directory_.write("conf/" + file.path().filename().string(),
                             with_free_ports(read_text(file.path())));
    }
  }

  [[nodiscard]] std::string with_free_ports(std::string text) const {
    for (std::size_t i = 0; i < kPorts.size(); ++i) {
      text = replaced(text, fmt::format("127.0.0.1:{}", kPorts[i]), free_[i].address());
    }
    return text;
  }

  // A script that runs the commands, waits after each `&` as a reader does, keeps the results of
  // the loads, and stops at the first command that fails.
  [[nodiscard]] std::string script_of(const std::vector<std::string>& commands) const {
    std::string script = fmt::format("cd {}\nexec > log 2>&1\n", directory_.path().string());
    script += fmt::format("log={0}/log\nkept={0}\n", directory_.path().string());
    int ready = 0;
    int typed = 0;
    for (const std::string& command : commands) {
      // This command removes the results.
      if (command.starts_with("cd ..")) script += "cp *.json $kept\n";
      script += with_free_ports(command) + "\n";
      script += fmt::format("[ $? = 0 ] || {{ echo failed: command {}; exit 1; }}\n", ++typed);
      if (!command.ends_with("&")) continue;
      script += fmt::format(
          "for turn in $(seq 300); do [ $(grep -c ': ready \\|ready on\\|ready at' $log) -ge {} ] "
          "&& break;"
          " sleep 0.1; done\n",
          ++ready);
    }
    return script + "echo walked\n";
  }

  // The total bandwidth of a run, and the ratio of its two applications.
  struct Run {
    double total = 0;
    double ratio = 0;
  };
  [[nodiscard]] Run run(const std::string& name) const {
    const auto json = nlohmann::json::parse(read_text(directory_.path() / (name + ".json")));
    const auto rate = [&](std::size_t i) {
      return json["applications"][i]["mib_per_s"].get<double>();
    };
    EXPECT_EQ(json["applications"][0]["name"], "simulation");
    EXPECT_EQ(json["applications"][0]["errors"], 0);
    EXPECT_EQ(json["applications"][1]["errors"], 0);
    return {.total = json["total_mib_per_s"], .ratio = rate(0) / rate(1)};
  }

  static constexpr std::array kPorts = {3334, 3335, 4334, 4335};
  TemporaryDirectory directory_;
  std::vector<ReservedPort> free_;
};

TEST_F(WalkThrough, DoesWhatItSays) {
  const auto commands = commands_of(read_text(source("docs/walk-through.md")));
  ASSERT_GE(commands.size(), 15U);
  Process shell({"bash", directory_.write("walk.sh", script_of(commands))});
  const auto exit = shell.wait(150s);
  const std::string log = read_text(directory_.path() / "log");
  ASSERT_TRUE(exit && exit->ok()) << log << shell.errors();
  EXPECT_NE(log.find("walked\n"), std::string::npos) << log;
  for (const char* said :
       {"NAME       RULE", "ENTITLED", "2 proxies: ", "proxy-s0.yaml: ok", "proxy-s1.yaml: ok",
        "\"name\": \"simulation\"", "\"weight\": 4", "proxy-s1.yaml: reloaded"}) {
    EXPECT_NE(log.find(said), std::string::npos) << said << "\n" << log;
  }
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "walk"));
  const Run direct = run("direct");
  const Run shared = run("shared");
  const Run more = run("more");
  for (const Run& each : {direct, shared, more}) {
    std::cout << each.total << " MiB/s, ratio " << each.ratio << "\n";
    if (each.total < kBusy * kDevices) GTEST_SKIP() << "this machine is too slow for the devices";
  }
  EXPECT_NEAR(direct.ratio, 1.0, 0.1) << kByClock;
  EXPECT_NEAR(shared.ratio, 2.0, 0.2) << kByClock;
  EXPECT_NEAR(more.ratio, 4.0, 0.6) << kByClock;
}

}  // namespace
}  // namespace vpfs::test
