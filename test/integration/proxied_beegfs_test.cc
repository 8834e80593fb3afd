// vpfs-load through a real vpfs-proxy to a BeeGFS storage server double: verified data, shares, and
// what becomes of them when things break.

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/beegfs/storage.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

constexpr double kMiB = 1 << 20;

class ProxiedBeegfs : public ::testing::Test {
 protected:
  static StorageSettings device(std::uint64_t mib_per_second) {
    return {.targets = {101, 102},
            .device = dataserver::DeviceSettings{
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

  // Starts vpfs-load; result() waits for it.
  void load(const std::string& applications, double seconds, std::uint16_t target = 101) {
    results_file_ = (directory_.path() / "results.json").string();
    const std::string config = directory_.write(
        "load.yaml",
        fmt::format("file_system: beegfs://127.0.0.1:{}/{}\nduration: {:.0f} ms\nwarm_up: 500 ms\n"
                    "verify: {}\napplications:\n{}",
                    proxy_->port(), target, seconds * 1000, verify_, applications));
    load_.emplace(std::vector<std::string>{VPFS_BIN_DIR "/vpfs-load", "--config", config,
                                           "--no-live", "--json", results_file_});
    seconds_ = seconds;
  }
  void finish_load() {
    const auto exit = load_->wait(120s);
    ASSERT_TRUE(exit && exit->ok()) << load_->output() << load_->errors();
    std::ifstream file(results_file_);
    results_ = nlohmann::json::parse(file);
    for (const auto& application : results_["applications"]) {
      EXPECT_EQ(application["errors"], 0) << application["name"];
      EXPECT_EQ(application["verify_failures"], 0) << application["name"];
    }
    EXPECT_EQ(storage_->record().headers_in_pieces, 0U);
    EXPECT_EQ(proxy_->status()["counters"]["framing_errors"], 0);
  }
  // Of the first application, since the proxy began.
  [[nodiscard]] bool wait_for_requests(std::uint64_t count) {
    return proxy_->wait_until(
        [&](const auto& now) { return now["virtual_pfs"][1]["done_requests"] >= count; });
  }
  [[nodiscard]] const nlohmann::json& application(const std::string& name) const {
    for (const auto& each : results_["applications"]) {
      if (each["name"] == name) return each;
    }
    throw std::runtime_error("no application " + name);
  }
  [[nodiscard]] double rate(const std::string& name) const {
    return application(name)["bytes"].get<double>() / kMiB / seconds_;
  }
  [[nodiscard]] double requests_each_second(const std::string& name) const {
    return application(name)["requests"].get<double>() / seconds_;
  }

  TemporaryDirectory directory_;
  std::optional<BeegfsStorage> storage_;
  std::optional<ProxyProcess> proxy_;
  std::optional<Process> load_;
  std::string results_file_;
  nlohmann::json results_;
  double seconds_ = 0;
  bool verify_ = true;
};

std::string busy(const std::string& name, std::uint32_t uid, const std::string& more) {
  return fmt::format("  - {{name: {}, uid: {}, processes: 2, outstanding: 8, {}}}\n", name, uid,
                     more);
}

TEST_F(ProxiedBeegfs, SharesByUserHoldWhileTheDataStayWhole) {
  struct Case {
    const char* io;
    const char* file_size;
    std::uint64_t mib_per_second;  // slow enough for every build to keep queues full
  };
  for (const Case& each : {Case{"size: 64 KiB, read_percent: 0", "1 MiB", 10},
                           Case{"size: 64 KiB, read_percent: 100", "1 MiB", 10},
                           Case{"size: 256 KiB, read_percent: 50", "3 MiB", 16},
                           Case{"size: 4 KiB, read_percent: 50", "256 KiB", 1}}) {
    SCOPED_TRACE(each.io);
    begin(device(each.mib_per_second), "a: {weight: 2}, b: {weight: 1}", 4);
    const std::string io = fmt::format("{}, file_size: {}", each.io, each.file_size);
    load(busy("a", 1001, io) + busy("b", 1002, io), 2);
    ASSERT_NO_FATAL_FAILURE(finish_load());
    EXPECT_NEAR(rate("a") / rate("b"), 2.0, 0.25);
    proxy_.reset();
    storage_.reset();
  }
}

// Policies, depths and targets change under verified load, and no connection notices.
TEST_F(ProxiedBeegfs, ReloadsUnderLoadHarmNothing) {
  begin(device(60), "a: {weight: 2}, b: {weight: 1}", 4, "per_target: true");
  load(busy("a", 1001, "size: 128 KiB, read_percent: 50, file_size: 8 MiB") +
           busy("b", 1002, "size: 4 KiB, read_percent: 50, pattern: random, file_size: 1 MiB"),
       4, 102);
  std::uint64_t requests = 0;
  for (const char* policy : {"tbf", "edf", "adaptbf", "fifo", "sfq"}) {
    requests += 200;
    ASSERT_TRUE(wait_for_requests(requests));
    ProxySettings next = settings("a: {weight: 1}, b: {weight: 1}", 2, "per_target: true");
    next.policy = policy;
    proxy_->reload(next);
  }
  ASSERT_NO_FATAL_FAILURE(finish_load());
  EXPECT_EQ(proxy_->status()["reloads"]["failed"], 0);
  EXPECT_EQ(proxy_->status()["targets"][0]["target"], 102);
  EXPECT_TRUE(proxy_->wait_until_idle());
}

TEST_F(ProxiedBeegfs, AKilledProxyIsAPauseAndNoError) {
  begin(device(40), "a: {weight: 1}, b: {weight: 1}", 8);
  load(busy("a", 1001, "size: 256 KiB, read_percent: 50, file_size: 8 MiB"), 8);
  ASSERT_TRUE(wait_for_requests(200));
  proxy_->kill();
  ASSERT_TRUE(storage_->wait_until([](const auto& seen) { return seen.open_connections == 0; }));
  proxy_->start();
  ASSERT_NO_FATAL_FAILURE(finish_load());
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
  load(busy("a", 1001, "size: 64 KiB, read_percent: 50, file_size: 4 MiB"), 7);
  ASSERT_NO_FATAL_FAILURE(finish_load());
  EXPECT_TRUE(
      proxy_->wait_until([](const nlohmann::json& now) { return now["outstanding"] == 0; }));
}

// On a node whose connections one application would take.
TEST_F(ProxiedBeegfs, AnApplicationBesideOneThatIsHeldToACrawlStillGetsConnections) {
  const std::string fast =
      "  - {name: b, uid: 1002, node: n1, processes: 1, outstanding: 1, size: 4 KiB,"
      " read_percent: 100, pattern: random, file_size: 256 KiB}\n";
  const std::string slow =
      "  - {name: a, uid: 1001, node: n1, processes: 1, outstanding: 40, size: 16 KiB,"
      " read_percent: 100, pattern: random, file_size: 1 MiB}\n";
  StorageSettings storage = device(1000);
  storage.device->per_request = 1ms;
  const std::string shares = "a: {rate: 512 KiB/s, burst: 16 KiB}, b: {weight: 1}";
  begin(storage, shares, 16);
  verify_ = false;  // reading it all back at such a rate takes long
  load(fast, 2);
  ASSERT_NO_FATAL_FAILURE(finish_load());
  const double alone = requests_each_second("b");
  load(slow + fast, 6);
  ASSERT_NO_FATAL_FAILURE(finish_load());
  RecordProperty("part_of_what_it_has_alone", std::to_string(requests_each_second("b") / alone));
  EXPECT_GE(requests_each_second("b") / alone, 0.6) << alone << " alone";
  EXPECT_GE(rate("a"), 0.35) << "and the other one goes on";
  EXPECT_GT(proxy_->status()["counters"]["excess_requests"], 0);
}

}  // namespace
}  // namespace vpfs::test
