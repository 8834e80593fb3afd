// The examples of conf/ for a few seconds each, on verified I/O: what they promise is what they do.
// All their rates and sizes are divided by 16, so that any machine is fast enough.

#include <algorithm>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

constexpr double kScale = 16;
constexpr double kMiB = 1 << 20;
// What the examples speak of: 400 MiB/s and a little more, and requests of 1 MiB.
constexpr double kDevice = 28;  // MiB/s
constexpr const char* kRequest = "64 KiB";

// What a machine that is busy with other things lets through of a rate: tokens beyond the burst are
// lost while nobody can be served.
constexpr double kLeastPart = 0.7;
constexpr double kSeconds = 3;

// MiB/s, and MiB that may come at once.
void expect_limited(double measured, double rate, double burst) {
  // What is at the data server when the measurement begins ends in it.
  const double depth = 8 / kScale;
  EXPECT_LE(measured, rate + (burst + depth + 1 / kScale) / kSeconds);
  EXPECT_GE(measured, kLeastPart * rate);
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string scaled_down(const std::string& text) {
  static const std::regex kAmount(R"((\d+) ([KMG]iB))");
  std::string scaled;
  auto last = text.cbegin();
  for (std::sregex_iterator each(text.begin(), text.end(), kAmount), end; each != end; ++each) {
    scaled.append(last, text.cbegin() + each->position());
    scaled += fmt::format("{:g} {}", std::stod((*each)[1]) / kScale, (*each)[2].str());
    last = text.cbegin() + each->position() + each->length();
  }
  return scaled.append(last, text.cend());
}

// An example as ProxySettings::whole wants it.
std::string example(const std::string& name) {
  std::string text = read_text(std::string(VPFS_SOURCE_DIR) + "/conf/" + name + ".yaml");
  text = replaced(replaced(scaled_down(text), "{", "{{"), "}", "}}");
  text =
      replaced(text, "listen: 127.0.0.1:4334", "status_file: '{status_file}'\n  listen: {listen}");
  return replaced(text, "upstream: 127.0.0.1:3334", "upstream: {upstream}");
}

// One data server that does kDevice behind one proxy with an example's configuration.
class ExampleConfigurations : public ::testing::Test {
 protected:
  void run(const std::string& name, const std::string& applications) {
    proxy_.emplace(ProxySettings{.upstream = server_port_.number(), .whole = example(name)});
    const std::string config = directory_.write(
        "server.yaml",
        fmt::format("file_system: {{name: vpfs, id: 1234}}\n"
                    "servers: [{{alias: s0, addresses: ['tcp://{}', 'tcp-px://127.0.0.1:{}']}}]\n"
                    "storage: {{engine: memory}}\n"
                    "device: {{bandwidth: {} MiB/s}}\n",
                    server_port_.address(), proxy_->port(), kDevice));
    Process server({VPFS_BIN_DIR "/vpfs-server", "--config", config, "--server", "s0"});
    ASSERT_TRUE(server.wait_for_line("ready on")) << server.errors();
    const std::string load_config = directory_.write(
        "load.yaml", fmt::format("file_system: tcp-px://127.0.0.1:{}/vpfs\n"
                                 "duration: 3 s\nwarm_up: 1 s\nverify: true\napplications:\n{}",
                                 proxy_->port(), applications));
    const std::string results = (directory_.path() / "results.json").string();
    Process load(
        {VPFS_BIN_DIR "/vpfs-load", "--config", load_config, "--no-live", "--json", results});
    const auto exit = load.wait(60s);
    ASSERT_TRUE(exit && exit->ok()) << load.output() << load.errors();
    std::ifstream file(results);
    results_ = nlohmann::json::parse(file);
    for (const auto& application : results_["applications"]) {
      EXPECT_EQ(application["errors"], 0);
      EXPECT_EQ(application["verify_failures"], 0);
    }
    status_ = proxy_->status();
    EXPECT_TRUE(server.stop().ok()) << server.errors();
  }

  // MiB/s, as the application saw it.
  [[nodiscard]] double rate(const std::string& application) const {
    for (const auto& each : results_["applications"]) {
      if (each["name"] == application) return each["bytes"].get<double>() / kMiB / kSeconds;
    }
    throw std::runtime_error("no application " + application);
  }
  [[nodiscard]] nlohmann::json virtual_pfs(const std::string& name) const {
    for (const auto& each : status_["virtual_pfs"]) {
      if (each["name"] == name) return each;
    }
    throw std::runtime_error("no virtual PFS " + name);
  }

  static std::string writer(const std::string& name, const std::string& jobid,
                            unsigned outstanding) {
    return fmt::format(
        "  - {{name: {}, jobid: '{}', size: {}, outstanding: {}, file_size: 8 MiB}}\n", name, jobid,
        kRequest, outstanding);
  }

  TemporaryDirectory directory_;
  ReservedPort server_port_;
  std::optional<ProxyProcess> proxy_;
  nlohmann::json results_;
  nlohmann::json status_;
};

TEST_F(ExampleConfigurations, FifoServesEverybodyAlike) {
  run("fifo", writer("simulation", "simulation", 16) + writer("analysis", "analysis", 16));
  EXPECT_NEAR(rate("simulation") / rate("analysis"), 1.0, 0.1);
}

TEST_F(ExampleConfigurations, SfqSharesByWeightWithinLimits) {
  run("sfq", writer("simulation", "simulation", 64) + writer("analysis", "analysis", 64) +
                 writer("backup", "backup", 64));
  EXPECT_NEAR(rate("simulation") / rate("analysis"), 2.0, 0.2);
  // Its limit, or its weight's part if the machine is too slow for that.
  const double total = rate("simulation") + rate("analysis") + rate("backup");
  EXPECT_NEAR(rate("backup"), std::min(50 / kScale, total / 7), 0.3);
}

TEST_F(ExampleConfigurations, TbfKeepsRatesAndGivesTheRestToWhoHasNone) {
  run("tbf", writer("simulation", "simulation", 64) + writer("analysis", "analysis", 64) +
                 writer("backup", "backup", 64) + writer("others", "", 64));
  const double total = rate("simulation") + rate("analysis") + rate("backup") + rate("others");
  if (total < 0.9 * kDevice) {
    // Then the realtime one catches up, and nothing is left for those without a rate.
    GTEST_SKIP() << "this machine does " << total << " MiB/s only: too slow for the rates";
  }
  expect_limited(rate("simulation"), 100 / kScale, 8 / kScale);
  expect_limited(rate("analysis"), 50 / kScale, 3 / kScale);
  expect_limited(rate("backup"), 50 / kScale, 3 / kScale);
  EXPECT_GE(rate("others"), kLeastPart * 100 / kScale);
}

TEST_F(ExampleConfigurations, AdaptbfDividesByNodes) {
  run("adaptbf", writer("simulation", "simulation", 64) + writer("analysis", "analysis", 64));
  EXPECT_NEAR(rate("simulation") / rate("analysis"), 3.0, 0.5);
  EXPECT_EQ(virtual_pfs("simulation")["record"].get<std::int64_t>() +
                virtual_pfs("analysis")["record"].get<std::int64_t>(),
            0);
  EXPECT_EQ(status_["capacity_source"], "measured");
}

TEST_F(ExampleConfigurations, EdfKeepsThePromisedLatencyBesideAFlood) {
  run("edf",
      "  - {name: interactive, jobid: interactive, size: 4 KiB, outstanding: 1, read_percent: 100,"
      " pattern: random, file_size: 4 MiB}\n" +
          writer("others", "", 64));
  const nlohmann::json interactive = virtual_pfs("interactive");
  EXPECT_EQ(interactive["promised"], true);
  // None when the machine itself is never late.
  EXPECT_LE(interactive["deadline_misses"].get<double>(),
            0.01 * interactive["done_requests"].get<double>());
  EXPECT_LT(interactive["wait_us"]["p99"].get<double>(),
            virtual_pfs("default")["wait_us"]["p50"].get<double>() / 4);
}

}  // namespace
}  // namespace vpfs::test
