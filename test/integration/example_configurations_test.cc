// The examples of conf/ for a few seconds each, on verified I/O: what they promise is what they do.
// All their rates and sizes are divided by 16, so that any machine is fast enough.

#include <algorithm>
#include <chrono>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/load_run.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

constexpr double kScale = 16;
// What the examples speak of: 400 MiB/s and a little more, and requests of 1 MiB.
constexpr double kDevice = 28;  // MiB/s
constexpr const char* kRequest = "64 KiB";

// What a machine that is busy with other things lets through of a rate: tokens beyond the burst are
// lost while nobody can be served.
constexpr double kLeastPart = 0.7;
// And what a realtime class catches up of what the machine was late with before the measurement.
constexpr double kMostPart = 1.15;
constexpr int kSeconds = 3;

// MiB/s, and MiB that may come at once.
void expect_limited(double measured, double rate, double burst) {
  // What is at the data server when the measurement begins ends in it.
  const double depth = 8 / kScale;
  EXPECT_LE(measured, kMostPart * rate + (burst + depth + 1 / kScale) / kSeconds);
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
    load_.emplace(
        LoadRunSettings{.file_system = fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxy_->port()),
                        .applications = applications,
                        .duration = fmt::format("{} s", kSeconds),
                        .warm_up = "1 s",
                        // On a slow machine tbf leaves nothing to those without a rate.
                        .everybody_served = false});
    watch_queues();
    load_->expect_good_end();
    status_ = proxy_->status();
    EXPECT_TRUE(server.stop().ok()) << server.errors();
  }

  // MiB/s, as the application saw it.
  [[nodiscard]] double rate(const std::string& application) const {
    return load_->mib_per_second(application);
  }
  // Whether there was something to share out among them: a busy device, and requests of each that
  // waited all the time. Else this machine is too slow for what the example promises.
  [[nodiscard]] bool fought_for_the_device(const std::vector<std::string>& names) const {
    return load_->total_mib_per_second() >= 0.9 * kDevice &&
           std::ranges::none_of(names, [this](const auto& name) { return idle_.contains(name); });
  }
  [[nodiscard]] std::string too_slow() const {
    return fmt::format("this machine does {:.1f} of the device's {} MiB/s; not always busy: {}",
                       load_->total_mib_per_second(), kDevice, fmt::join(idle_, " "));
  }
  // Looks who has nothing waiting, as long as the run is measured.
  void watch_queues() {
    ASSERT_TRUE(load_->wait_until_begun()) << load_->text();
    const auto begin = std::chrono::steady_clock::now() + 1s;
    std::this_thread::sleep_until(begin);
    while (std::chrono::steady_clock::now() < begin + kSeconds * 1s - 100ms) {
      for (const auto& each : proxy_->status()["virtual_pfs"]) {
        if (each["queued_requests"] == 0) idle_.insert(each["name"]);
      }
      std::this_thread::sleep_for(10ms);
    }
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
  std::optional<LoadRun> load_;
  std::set<std::string> idle_;  // virtual PFSes that had nothing waiting once
  nlohmann::json status_;
};

TEST_F(ExampleConfigurations, FifoServesEverybodyAlike) {
  run("fifo", writer("simulation", "simulation", 16) + writer("analysis", "analysis", 16));
  if (!fought_for_the_device({"simulation", "analysis"})) GTEST_SKIP() << too_slow();
  EXPECT_NEAR(rate("simulation") / rate("analysis"), 1.0, 0.1);
}

TEST_F(ExampleConfigurations, SfqSharesByWeightWithinLimits) {
  run("sfq", writer("simulation", "simulation", 64) + writer("analysis", "analysis", 64) +
                 writer("backup", "backup", 64));
  if (!fought_for_the_device({"simulation", "analysis", "backup"})) GTEST_SKIP() << too_slow();
  EXPECT_NEAR(rate("simulation") / rate("analysis"), 2.0, 0.2);
  EXPECT_NEAR(rate("backup"), 50 / kScale, 0.3);
}

TEST_F(ExampleConfigurations, TbfKeepsRatesAndGivesTheRestToWhoHasNone) {
  run("tbf", writer("simulation", "simulation", 64) + writer("analysis", "analysis", 64) +
                 writer("backup", "backup", 64) + writer("others", "", 64));
  if (!fought_for_the_device({"simulation", "analysis", "backup", "default"}))
    GTEST_SKIP() << too_slow();
  expect_limited(rate("simulation"), 100 / kScale, 8 / kScale);
  expect_limited(rate("analysis"), 50 / kScale, 3 / kScale);
  expect_limited(rate("backup"), 50 / kScale, 3 / kScale);
  EXPECT_GE(rate("others"), kLeastPart * 100 / kScale);
}

TEST_F(ExampleConfigurations, AdaptbfDividesByNodes) {
  run("adaptbf", writer("simulation", "simulation", 64) + writer("analysis", "analysis", 64));
  EXPECT_EQ(virtual_pfs("simulation")["record"].get<std::int64_t>() +
                virtual_pfs("analysis")["record"].get<std::int64_t>(),
            0);
  EXPECT_EQ(status_["capacity_source"], "measured");
  if (!fought_for_the_device({"simulation", "analysis"})) GTEST_SKIP() << too_slow();
  EXPECT_NEAR(rate("simulation") / rate("analysis"), 3.0, 0.5);
}

TEST_F(ExampleConfigurations, EdfKeepsThePromisedLatencyBesideAFlood) {
  run("edf",
      "  - {name: interactive, jobid: interactive, size: 4 KiB, outstanding: 1, read_percent: 100,"
      " pattern: random, file_size: 4 MiB}\n" +
          writer("others", "", 64));
  const nlohmann::json interactive = virtual_pfs("interactive");
  EXPECT_EQ(interactive["promised"], true);
  if (!fought_for_the_device({"default"})) GTEST_SKIP() << too_slow();
  // None when the machine itself is never late.
  EXPECT_LE(interactive["deadline_misses"].get<double>(),
            0.01 * interactive["done_requests"].get<double>());
  EXPECT_LT(interactive["wait_us"]["p99"].get<double>(),
            virtual_pfs("default")["wait_us"]["p50"].get<double>() / 4);
}

}  // namespace
}  // namespace vpfs::test
