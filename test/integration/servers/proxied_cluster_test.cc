// vpfs-load runs through vpfs-proxy to vpfs-server and verifies every block, while one of the three
// dies or lacks a resource.

#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/load_run.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

constexpr const char* kLargeAndSmall =
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
    server_.emplace(std::vector<std::string>{program("vpfs-server"), "--config", config});
    ASSERT_TRUE(server_->wait_for_line("ready on")) << server_->errors();
  }

  [[nodiscard]] LoadRunSettings load_settings(const std::string& applications,
                                              const std::string& duration = "") const {
    return {.file_system = fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxy_.port()),
            .applications = applications,
            .duration = duration};
  }
  // Waits until the proxy has served this many requests since its start, so that the load is well
  // under way.
  [[nodiscard]] bool wait_for_progress(std::uint64_t requests) {
    return proxy_.wait_until([&](const nlohmann::json& now) { return done_in(now) >= requests; });
  }
  [[nodiscard]] std::uint64_t requests_done() { return done_in(proxy_.status()); }
  [[nodiscard]] static std::uint64_t done_in(const nlohmann::json& status) {
    std::uint64_t done = 0;
    for (const auto& pfs : status["virtual_pfs"]) done += pfs["done_requests"].get<std::uint64_t>();
    return done;
  }

  void expect_nothing_left() {
    EXPECT_TRUE(proxy_.wait_until_idle());
    EXPECT_TRUE(server_->stop().ok()) << server_->errors();
  }

  TemporaryDirectory directory_;
  ReservedPort server_port_;
  ProxyProcess proxy_;
  std::optional<Process> server_;
};

TEST_F(ProxiedCluster, KilledProxyCostsNoByte) {
  start_server("engine: memory");
  LoadRun load(load_settings(kLargeAndSmall));
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  for (int round = 0; round < 3; ++round) {
    proxy_.kill();
    proxy_.start();
    ASSERT_TRUE(wait_for_progress(100));
  }
  load.expect_good_stop();
  expect_nothing_left();
}

TEST_F(ProxiedCluster, KilledServerCostsNoByte) {
  const std::string storage =
      fmt::format("engine: directory, path: {}", (directory_.path() / "store").string());
  start_server(storage);
  LoadRun load(load_settings(kLargeAndSmall));
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  for (int round = 0; round < 3; ++round) {
    (void)server_->kill();
    start_server(storage);
    ASSERT_TRUE(wait_for_progress(requests_done() + 100));
  }
  load.expect_good_stop();
  expect_nothing_left();
  EXPECT_GT(proxy_.lines_with("connection closed: "), 3U);
}

TEST_F(ProxiedCluster, SlowServerIsOnlySlow) {
  start_server("engine: memory", "device: {bandwidth: 20 MiB/s, per_request: 1 ms}\n");
  LoadRun load(load_settings(kLargeAndSmall, "1 s"));
  load.expect_good_end();
  expect_nothing_left();
}

TEST_F(ProxiedCluster, FullDiskFailsTheWriterAndNoOther) {
  start_server("engine: memory, capacity: 8 MiB");
  LoadRun load(load_settings(
      "  - {name: a, size: 64 KiB, outstanding: 8, read_percent: 0, file_size: 64 MiB}\n"
      "  - {name: b, size: 4 KiB, outstanding: 8, read_percent: 100, file_size: 1 MiB}\n"));
  ASSERT_TRUE(proxy_.wait_until([](const nlohmann::json& now) {
    const auto& pfs = now["virtual_pfs"];  // the first is "default"
    return pfs[1]["failed_requests"] > 0 && pfs[2]["done_requests"] > 300;
  }));
  EXPECT_FALSE(load.stop().ok());
  EXPECT_GT(load.application("a")["errors"], 0);
  EXPECT_EQ(load.application("a")["verify_failures"], 0);
  EXPECT_EQ(load.application("b")["errors"], 0);
  EXPECT_EQ(load.application("b")["verify_failures"], 0);
  EXPECT_GT(load.application("b")["verified_blocks"], 0);
  EXPECT_NE(load.text().find("No space left"), std::string::npos) << load.text();
  const nlohmann::json pfs = proxy_.status()["virtual_pfs"];
  EXPECT_EQ(pfs[1]["name"], "a");
  EXPECT_EQ(pfs[2]["failed_requests"], 0);
  EXPECT_TRUE(proxy_.wait_until_idle());

  // The writer's file is removed, so there is room again.
  LoadRun again(load_settings(
      "  - {name: b, size: 4 KiB, outstanding: 8, read_percent: 50, file_size: 1 MiB}\n",
      "300 ms"));
  again.expect_good_end();
  expect_nothing_left();
}

}  // namespace
}  // namespace vpfs::test
