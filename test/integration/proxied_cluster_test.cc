// vpfs-load, with every block verified, through vpfs-proxy to vpfs-server, while one of them dies
// or has too little of something.

#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

constexpr const char* kTwoMixed =
    "  - {name: a, size: 64 KiB, outstanding: 8, read_percent: 50, pattern: random,"
    " file_size: 8 MiB}\n"
    "  - {name: b, size: 4 KiB, outstanding: 8, read_percent: 50, pattern: random,"
    " file_size: 1 MiB}\n";

// One data server behind one proxy; clients mount through the proxy's zone.
class ProxiedCluster : public ::testing::Test {
 protected:
  ProxiedCluster()
      : proxy_({.upstream = server_port_.number(),
                .workers = 2,
                .depth = 4,
                .virtual_pfs = "a: {weight: 2}, b: {weight: 1}",
                .rules = "[{match: {hint: {jobid: a}}, virtual_pfs: a},"
                         " {match: {hint: {jobid: b}}, virtual_pfs: b}]"}) {}

  void start_server(const std::string& storage, const std::string& more = "") {
    const std::string config = directory_.write(
        "server.yaml",
        fmt::format("file_system: {{name: vpfs, id: 1234}}\n"
                    "servers: [{{alias: s0, addresses: ['tcp://{}', 'tcp-px://127.0.0.1:{}']}}]\n"
                    "storage: {{{}}}\n"
                    "client_timeouts: {{job: 10 s, flow: 10 s, retry_limit: 100,"
                    " retry_delay: 50 ms}}\n{}",
                    server_port_.address(), proxy_.port(), storage, more));
    server_.emplace(std::vector<std::string>{VPFS_BIN_DIR "/vpfs-server", "--config", config});
    ASSERT_TRUE(server_->wait_for_line("ready on")) << server_->errors();
  }

  void start_load(const std::string& applications, const std::string& duration) {
    const std::string config = directory_.write(
        "load.yaml", fmt::format("file_system: tcp-px://127.0.0.1:{}/vpfs\n"
                                 "duration: {}\nwarm_up: 0 s\nverify: true\napplications:\n{}",
                                 proxy_.port(), duration, applications));
    const std::string program = VPFS_BIN_DIR "/vpfs-load";
    load_.emplace(std::vector<std::string>{program, "--config", config, "--no-live", "--json",
                                           results_file()});
  }

  // The proxy has served `requests` since it was started: so the load is well under way.
  bool wait_for_progress(std::uint64_t requests) {
    return proxy_.wait_until([&](const nlohmann::json& now) {
      std::uint64_t done = 0;
      for (const auto& pfs : now["virtual_pfs"]) done += pfs["done_requests"].get<std::uint64_t>();
      return done >= requests;
    });
  }

  Process::Exit finish_load() {
    const auto exit = load_->wait(60s);
    if (!exit) throw std::runtime_error("vpfs-load does not end");
    std::ifstream file(results_file());
    results_ = nlohmann::json::parse(file, nullptr, false);
    return *exit;
  }

  void expect_good_end() {
    const Process::Exit exit = finish_load();
    EXPECT_TRUE(exit.ok()) << load_->output() << load_->errors() << server_->errors();
    ASSERT_FALSE(results_.is_discarded());
    for (const auto& application : results_["applications"]) {
      EXPECT_EQ(application["errors"], 0);
      EXPECT_EQ(application["verify_failures"], 0);
      EXPECT_GT(application["verified_blocks"], 0);
    }
    EXPECT_TRUE(proxy_.wait_until_idle());
    EXPECT_TRUE(server_->stop().ok()) << server_->errors();
  }

  [[nodiscard]] std::string results_file() const {
    return (directory_.path() / "results.json").string();
  }

  TemporaryDirectory directory_;
  ReservedPort server_port_;
  ProxyProcess proxy_;
  std::optional<Process> server_;
  std::optional<Process> load_;
  nlohmann::json results_;
};

TEST_F(ProxiedCluster, KilledProxyCostsNoByte) {
  start_server("engine: memory");
  start_load(kTwoMixed, "2 s");
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(wait_for_progress(300));
    proxy_.kill();
    proxy_.start();
  }
  ASSERT_TRUE(wait_for_progress(10));
  expect_good_end();
}

TEST_F(ProxiedCluster, KilledServerCostsNoByte) {
  const std::string storage =
      fmt::format("engine: directory, path: {}", (directory_.path() / "store").string());
  start_server(storage);
  start_load(kTwoMixed, "2 s");
  std::uint64_t requests = 300;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(wait_for_progress(requests));
    (void)server_->kill();
    start_server(storage);
    requests += 500;
  }
  expect_good_end();
  EXPECT_GT(proxy_.lines_with("connection closed: "), 3U);
}

TEST_F(ProxiedCluster, SlowServerIsOnlySlow) {
  start_server("engine: memory", "device: {bandwidth: 20 MiB/s, per_request: 1 ms}\n");
  start_load(kTwoMixed, "1 s");
  expect_good_end();
}

TEST_F(ProxiedCluster, FullDiskFailsTheWriterAndNobodyElse) {
  start_server("engine: memory, capacity: 8 MiB");
  start_load(
      "  - {name: a, size: 64 KiB, outstanding: 8, read_percent: 0, file_size: 64 MiB}\n"
      "  - {name: b, size: 4 KiB, outstanding: 8, read_percent: 100, file_size: 1 MiB}\n",
      "1 s");
  EXPECT_FALSE(finish_load().ok());
  ASSERT_FALSE(results_.is_discarded());
  const nlohmann::json writer = results_["applications"][0];
  const nlohmann::json reader = results_["applications"][1];
  EXPECT_GT(writer["errors"], 0);
  EXPECT_EQ(writer["verify_failures"], 0);
  EXPECT_EQ(reader["errors"], 0);
  EXPECT_EQ(reader["verify_failures"], 0);
  EXPECT_GT(reader["verified_blocks"], 0);
  EXPECT_NE((load_->output() + load_->errors()).find("No space left"), std::string::npos)
      << load_->output() << load_->errors();
  const nlohmann::json pfs = proxy_.status()["virtual_pfs"];
  EXPECT_EQ(pfs[1]["name"], "a");  // after "default"
  EXPECT_GT(pfs[1]["failed_requests"], 0);
  EXPECT_EQ(pfs[2]["failed_requests"], 0);
  EXPECT_TRUE(proxy_.wait_until_idle());

  // With the writer's file gone there is room again.
  start_load("  - {name: b, size: 4 KiB, outstanding: 8, read_percent: 50, file_size: 1 MiB}\n",
             "300 ms");
  expect_good_end();
}

}  // namespace
}  // namespace vpfs::test
