// vpfs-load through a real vpfs-proxy to a BeeGFS storage server double: verified data and shares,
// also while something breaks.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/load_run.h"
#include "test/support/proxy_process.h"
#include "test/support/servers/beegfs_storage.h"

namespace vpfs::test {
namespace {

class ProxiedBeegfs : public ::testing::Test {
 protected:
  static StorageSettings device(std::uint64_t mib_per_second) {
    return {.targets = {101, 102},
            .device = DeviceSettings{
                .bandwidth = {mib_per_second << 20}, .per_request = {}, .parallelism = 4}};
  }
  void begin(const StorageSettings& storage, const std::string& virtual_pfs, unsigned depth,
             const std::string& scheduler = "", const std::string& limits = "") {
    storage_.emplace(storage);
    proxy_.emplace(settings(virtual_pfs, depth, scheduler, limits));
  }
  [[nodiscard]] ProxySettings settings(const std::string& virtual_pfs, unsigned depth,
                                       const std::string& scheduler = "",
                                       const std::string& limits = "") const {
    return {
        .upstream = storage_->port(),
        .protocol = "beegfs",
        .workers = 2,
        .depth = depth,
        .scheduler = scheduler,
        .limits = limits,
        .virtual_pfs = virtual_pfs,
        .rules = "[{match: {uid: 1001}, virtual_pfs: a}, {match: {uid: 1002}, virtual_pfs: b}]"};
  }

  [[nodiscard]] LoadRunSettings load_settings(const std::string& applications,
                                              std::uint16_t target = 101) const {
    return {.file_system = fmt::format("beegfs://127.0.0.1:{}/{}", proxy_->port(), target),
            .applications = applications};
  }
  // Starts vpfs-load, which runs until it is stopped.
  [[nodiscard]] std::unique_ptr<LoadRun> load(const std::string& applications,
                                              std::uint16_t target = 101) const {
    return std::make_unique<LoadRun>(load_settings(applications, target));
  }
  void expect_nothing_amiss() {
    EXPECT_EQ(storage_->record().headers_in_pieces, 0U);
    EXPECT_EQ(proxy_->status()["counters"]["framing_errors"], 0);
  }
  // Requests of the first application since the proxy started.
  [[nodiscard]] std::uint64_t requests_done() {
    return proxy_->status()["virtual_pfs"][1]["done_requests"];
  }
  [[nodiscard]] bool wait_for_requests(std::uint64_t count) {
    return proxy_->wait_until(
        [&](const auto& now) { return now["virtual_pfs"][1]["done_requests"] >= count; });
  }

  std::optional<BeegfsStorage> storage_;
  std::optional<ProxyProcess> proxy_;
};

std::string busy(const std::string& name, std::uint32_t uid, const std::string& more) {
  return fmt::format("  - {{name: {}, uid: {}, processes: 2, outstanding: 8, {}}}\n", name, uid,
                     more);
}

// Policies, depths and targets change under verified load without harm to any connection.
TEST_F(ProxiedBeegfs, ReloadsUnderLoadHarmNothing) {
  begin(device(60), "a: {weight: 2}, b: {weight: 1}", 4, "per_target: true");
  const auto running =
      load(busy("a", 1001, "size: 128 KiB, read_percent: 50, file_size: 8 MiB") +
               busy("b", 1002, "size: 4 KiB, read_percent: 50, pattern: random, file_size: 1 MiB"),
           102);
  ASSERT_TRUE(running->wait_until_begun()) << running->text();
  for (const char* policy : {"tbf", "edf", "adaptbf", "fifo", "sfq"}) {
    ASSERT_TRUE(wait_for_requests(requests_done() + 100));
    ProxySettings next = settings("a: {weight: 1}, b: {weight: 1}", 2, "per_target: true");
    next.policy = policy;
    proxy_->reload(next);
  }
  ASSERT_TRUE(wait_for_requests(requests_done() + 100));
  running->expect_good_stop();
  expect_nothing_amiss();
  EXPECT_EQ(proxy_->status()["reloads"]["failed"], 0);
  EXPECT_EQ(proxy_->status()["targets"][0]["target"], 102);
  EXPECT_TRUE(proxy_->wait_until_idle());
}

TEST_F(ProxiedBeegfs, AKilledProxyIsAPauseAndNoError) {
  begin(device(40), "a: {weight: 1}, b: {weight: 1}", 8);
  const auto running = load(busy("a", 1001, "size: 256 KiB, read_percent: 50, file_size: 8 MiB"));
  ASSERT_TRUE(running->wait_until_begun()) << running->text();
  proxy_->kill();
  ASSERT_TRUE(storage_->wait_until([](const auto& seen) { return seen.open_connections == 0; }));
  proxy_->start();
  ASSERT_TRUE(wait_for_requests(50));
  running->expect_good_stop();
  expect_nothing_amiss();
}

TEST_F(ProxiedBeegfs, MistakesOfTheStorageServerReachOnlyTheirClient) {
  using Kind = StorageFault::Kind;
  using beegfs::MessageType;
  begin(device(40), "a: {weight: 1}, b: {weight: 1}", 8);
  for (const StorageFault& fault :
       {StorageFault{.kind = Kind::cut_answer, .bytes = 1000, .times = 3},
        StorageFault{.kind = Kind::cut_data, .type = MessageType::write_local_file, .bytes = 1000},
        StorageFault{.kind = Kind::error, .value = 3, .times = 2},
        StorageFault{.kind = Kind::delay, .delay = 300ms, .times = 5},
        StorageFault{.kind = Kind::half_word, .bytes = 3, .delay = 200ms, .times = 2}}) {
    storage_->inject(fault);
  }
  const auto running = load(busy("a", 1001, "size: 64 KiB, read_percent: 50, file_size: 4 MiB"));
  ASSERT_TRUE(running->wait_until_begun()) << running->text();
  ASSERT_TRUE(storage_->wait_until([](const auto& seen) { return seen.faults_left == 0; }));
  ASSERT_TRUE(wait_for_requests(requests_done() + 50));
  running->expect_good_stop();
  expect_nothing_amiss();
  EXPECT_TRUE(
      proxy_->wait_until([](const nlohmann::json& now) { return now["outstanding"] == 0; }));
}

}  // namespace
}  // namespace vpfs::test
