// vpfs-proxy before a real BeeGFS storage server, with vpfs-load as its client.

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/beegfs_servers.h"
#include "test/support/network_namespaces.h"

namespace vpfs::test {
namespace {

class RealBeegfs : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::optional<std::string> folder = BeegfsServers::find();
    if (!folder) GTEST_SKIP() << "no BeeGFS servers: set VPFS_BEEGFS_PREFIX";
    hosts_.emplace();
    if (!hosts_->problem().empty()) GTEST_SKIP() << hosts_->problem();
    servers_.emplace(*folder, *hosts_);
    ASSERT_TRUE(servers_->ready()) << servers_->errors();
  }
  void TearDown() override {
    if (proxy_) {
      EXPECT_TRUE(proxy_->stop(30s).ok()) << proxy_->errors();
    }
    if (servers_) {
      EXPECT_TRUE(servers_->stop());
    }
  }

  void start_proxy(const std::string& scheduler, const std::string& upstream = "127.0.0.1:8003") {
    status_file_ = (directory_.path() / "status.json").string();
    const std::string config = directory_.write(
        "proxy.yaml",
        fmt::format("proxy: {{listen: '0.0.0.0:9003', upstream: '{}', protocol: beegfs,\n"
                    "        status_file: '{}', status_interval: 100 ms, workers: 2}}\n"
                    "scheduler: {{{}}}\n"
                    "virtual_pfs: {{a: {{weight: 2}}, b: {{weight: 1}}}}\n"
                    "rules: [{{match: {{uid: 1001}}, virtual_pfs: a}},\n"
                    "        {{match: {{uid: 1002}}, virtual_pfs: b}}]\n",
                    upstream, status_file_, scheduler));
    proxy_.emplace(hosts_->at_servers({VPFS_BIN_DIR "/vpfs-proxy", "--config", config}));
    ASSERT_TRUE(proxy_->wait_for_line("ready at")) << proxy_->errors();
  }
  [[nodiscard]] nlohmann::json status() const {
    std::ifstream file(status_file_);
    return nlohmann::json::parse(file);
  }

  [[nodiscard]] Process load(int port, int target, int seconds, const std::string& applications,
                             bool keep_files = false) {
    results_file_ = (directory_.path() / "results.json").string();
    const std::string config = directory_.write(
        "load.yaml",
        fmt::format("file_system: beegfs://10.77.0.1:{}/{}\nduration: {} s\nwarm_up: 0 s\n"
                    "verify: true\nkeep_files: {}\napplications:\n{}",
                    port, target, seconds, keep_files, applications));
    return Process(hosts_->at_clients(
        {VPFS_BIN_DIR "/vpfs-load", "--config", config, "--no-live", "--json", results_file_}));
  }
  // It ended well, without an error or a wrong byte.
  void finish(Process& load) {
    const auto exit = load.wait(120s);
    ASSERT_TRUE(exit && exit->ok()) << load.output() << load.errors();
    std::ifstream file(results_file_);
    results_ = nlohmann::json::parse(file);
    for (const auto& application : results_["applications"]) {
      EXPECT_EQ(application["errors"], 0) << application["name"];
      EXPECT_EQ(application["verify_failures"], 0) << application["name"];
      EXPECT_GT(application["requests"], 0) << application["name"];
    }
  }

  TemporaryDirectory directory_;
  std::optional<TwoHosts> hosts_;
  std::optional<BeegfsServers> servers_;
  std::optional<Process> proxy_;
  std::string status_file_;
  std::string results_file_;
  nlohmann::json results_;
};

constexpr const char* kBoth =
    "  - {name: a, uid: 1001, processes: 2, outstanding: 6, size: 1 MiB, read_percent: 50,"
    " file_size: 16 MiB}\n"
    "  - {name: b, uid: 1002, processes: 2, outstanding: 6, size: 4 KiB, read_percent: 50,"
    " pattern: random, file_size: 1 MiB}\n";

TEST_F(RealBeegfs, EveryPolicyLeavesTheDataWhole) {
  for (const char* policy : {"fifo", "sfq", "tbf", "edf", "adaptbf"}) {
    SCOPED_TRACE(policy);
    start_proxy(fmt::format("policy: {}, depth: {{requests: 4}}, per_target: true", policy));
    Process process = load(9003, 1, 2, kBoth);
    ASSERT_NO_FATAL_FAILURE(finish(process));
    EXPECT_TRUE(proxy_->stop(30s).ok());
    const nlohmann::json now = status();
    EXPECT_EQ(now["counters"]["framing_errors"], 0);
    EXPECT_GT(now["virtual_pfs"][1]["done_requests"], 50);
    EXPECT_GT(now["virtual_pfs"][2]["done_requests"], 50);
    EXPECT_EQ(now["virtual_pfs"][1]["failed_requests"], 0);
    EXPECT_EQ(now["outstanding"], 0);
  }
}

TEST_F(RealBeegfs, WhatIsWrittenIsInTheChunkFiles) {
  start_proxy("policy: sfq, depth: {requests: 2}");
  Process process = load(9003, 2, 1,
                         "  - {name: a, uid: 1001, processes: 1, outstanding: 2, size: 700 KiB, "
                         "file_size: 7000 KiB}\n",
                         true);
  ASSERT_NO_FATAL_FAILURE(finish(process));
  EXPECT_EQ(servers_->stored_bytes(1), 0U);
  EXPECT_EQ(servers_->stored_bytes(2), 7000U * 1024);
}

TEST_F(RealBeegfs, AKilledProxyIsAPauseAndNoError) {
  start_proxy("policy: sfq, depth: {requests: 4}");
  Process process = load(9003, 1, 8, kBoth);
  std::this_thread::sleep_for(2s);
  (void)proxy_->kill();
  std::this_thread::sleep_for(200ms);
  start_proxy("policy: sfq, depth: {requests: 4}");
  ASSERT_NO_FATAL_FAILURE(finish(process));
}

TEST_F(RealBeegfs, IsInsertedAndRemovedUnderLoad) {
  if (!run({"nft", "--version"}).ok()) GTEST_SKIP() << "nft is not installed";
  start_proxy("policy: sfq, depth: {requests: 8}", "original");
  Process process = load(8003, 1, 8, kBoth);
  std::this_thread::sleep_for(2s);
  const std::string script = VPFS_SOURCE_DIR "/script/insert-beegfs";
  std::string output;
  ASSERT_TRUE(run(hosts_->at_servers({script, "--cut"}), &output).ok()) << output;
  std::this_thread::sleep_for(3s);
  EXPECT_GT(status()["virtual_pfs"][2]["done_requests"], 100);
  ASSERT_TRUE(run(hosts_->at_servers({script, "--release"}), &output).ok()) << output;
  EXPECT_TRUE(proxy_->stop(30s).ok());
  ASSERT_TRUE(run(hosts_->at_servers({script, "--remove"}), &output).ok()) << output;
  ASSERT_NO_FATAL_FAILURE(finish(process));
  double pause = 0;
  for (const auto& application : results_["applications"]) {
    pause = std::max(pause, application["latency_us"]["max"].get<double>() / 1e6);
  }
  std::printf("longest pause: %.3f s\n", pause);
  EXPECT_LT(pause, 10.0);
}

}  // namespace
}  // namespace vpfs::test
