// vpfs-proxy in front of a real BeeGFS storage server, with vpfs-load as the client.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/load_run.h"
#include "test/support/network_namespaces.h"
#include "test/support/places.h"
#include "test/support/servers/beegfs_servers.h"

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
    std::filesystem::remove(status_file_);  // of an earlier proxy
    proxy_.emplace(hosts_->at_servers({program("vpfs-proxy"), "--config", config}));
    ASSERT_TRUE(proxy_->wait_for_line("ready at")) << proxy_->errors();
  }
  [[nodiscard]] nlohmann::json status() const {
    std::ifstream file(status_file_);
    return nlohmann::json::parse(file);
  }

  // Waits until the proxy has done this many requests of application b.
  [[nodiscard]] bool wait_for_requests(std::uint64_t count) const {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (std::chrono::steady_clock::now() < deadline) {
      const bool written = std::filesystem::exists(status_file_);
      if (written && status()["virtual_pfs"][2]["done_requests"] >= count) return true;
      std::this_thread::sleep_for(20ms);
    }
    return false;
  }

  [[nodiscard]] std::unique_ptr<LoadRun> load(int port, int target, const std::string& applications,
                                              const std::string& duration = "",
                                              const std::string& more = "") const {
    return std::make_unique<LoadRun>(
        LoadRunSettings{.file_system = fmt::format("beegfs://10.77.0.1:{}/{}", port, target),
                        .applications = applications,
                        .duration = duration,
                        .more = more},
        [this](const Command& command) { return hosts_->at_clients(command); });
  }

  TemporaryDirectory directory_;
  std::optional<TwoHosts> hosts_;
  std::optional<BeegfsServers> servers_;
  std::optional<Process> proxy_;
  std::string status_file_;
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
    load(9003, 1, kBoth, "2 s")->expect_good_end();
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
  load(9003, 2,
       "  - {name: a, uid: 1001, processes: 1, outstanding: 2, size: 700 KiB, file_size: 7000 "
       "KiB}\n",
       "1 s", "keep_files: true\n")
      ->expect_good_end();
  EXPECT_EQ(servers_->stored_bytes(1), 0U);
  EXPECT_EQ(servers_->stored_bytes(2), 7000U * 1024);
}

TEST_F(RealBeegfs, AKilledProxyIsAPauseAndNoError) {
  start_proxy("policy: sfq, depth: {requests: 4}");
  const auto running = load(9003, 1, kBoth);
  ASSERT_TRUE(running->wait_until_begun()) << running->text();
  (void)proxy_->kill();
  start_proxy("policy: sfq, depth: {requests: 4}");
  EXPECT_TRUE(wait_for_requests(100));
  running->expect_good_stop();
}

TEST_F(RealBeegfs, IsInsertedAndRemovedUnderLoad) {
  if (!run({"nft", "--version"}).ok()) GTEST_SKIP() << "nft is not installed";
  start_proxy("policy: sfq, depth: {requests: 8}", "original");
  const auto running = load(8003, 1, kBoth);
  ASSERT_TRUE(running->wait_until_begun()) << running->text();
  const std::string script = source("script/insert-beegfs");
  std::string output;
  ASSERT_TRUE(run(hosts_->at_servers({script, "--cut"}), &output).ok()) << output;
  EXPECT_TRUE(wait_for_requests(100));
  ASSERT_TRUE(run(hosts_->at_servers({script, "--release"}), &output).ok()) << output;
  EXPECT_TRUE(proxy_->stop(30s).ok());
  ASSERT_TRUE(run(hosts_->at_servers({script, "--remove"}), &output).ok()) << output;
  running->expect_good_stop();
  std::printf("longest pause: %.3f s\n", running->longest_pause());
  EXPECT_LT(running->longest_pause(), 10.0);
}

}  // namespace
}  // namespace vpfs::test
