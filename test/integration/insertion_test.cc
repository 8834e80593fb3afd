// Runs script/insert-beegfs and script/insert-orangefs under verified load, between a client and a
// server in network namespaces.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
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
#include "test/support/process.h"

namespace vpfs::test {
namespace {

class Insertion : public ::testing::Test {
 protected:
  void SetUp() override {
    hosts_.emplace();
    if (!hosts_->problem().empty()) GTEST_SKIP() << hosts_->problem();
    if (!run({"nft", "--version"}).ok()) GTEST_SKIP() << "nft is not installed";
    if (!run(hosts_->at_servers({"nft", "add", "table", "inet", "vpfs_try"})).ok()) {
      GTEST_SKIP() << "this kernel has no nftables";
    }
    ASSERT_TRUE(run(hosts_->at_servers({"nft", "delete", "table", "inet", "vpfs_try"})).ok());
  }

  void start_proxy(const std::string& protocol, std::uint16_t port, const std::string& upstream,
                   const std::string& more = "") {
    status_file_ = (directory_.path() / "status.json").string();
    // IPv4 and IPv6, as in conf/beegfs.yaml, if this kernel has both.
    const bool both = std::filesystem::exists("/proc/net/if_inet6");
    const std::string config = directory_.write(
        "proxy.yaml",
        fmt::format("proxy: {{listen: '{}:{}', upstream: '{}', protocol: {},\n"
                    "        status_file: '{}', status_interval: 100 ms}}\n"
                    "scheduler: {{policy: sfq, depth: {{requests: 8}}}}\n{}",
                    both ? "[::]" : "0.0.0.0", port, upstream, protocol, status_file_, more));
    proxy_.emplace(hosts_->at_servers({program("vpfs-proxy"), "--config", config}));
    ASSERT_TRUE(proxy_->wait_for_line("ready at")) << proxy_->errors();
  }
  // Sees the row of the only virtual PFS in the newest status file.
  using Condition = std::function<bool(const nlohmann::json& virtual_pfs)>;
  [[nodiscard]] bool wait_until(const Condition& condition) const {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    do {
      std::ifstream file(status_file_);
      if (condition(nlohmann::json::parse(file)["virtual_pfs"][0])) return true;
      std::this_thread::sleep_for(50ms);
    } while (std::chrono::steady_clock::now() < deadline);
    return false;
  }
  [[nodiscard]] bool wait_for_proxied_requests(std::uint64_t count) const {
    return wait_until([&](const nlohmann::json& pfs) { return pfs["done_requests"] >= count; });
  }

  std::string insert(const std::string& kind, const Command& arguments) {
    Command command = {source("script/insert-") + kind};
    command.insert(command.end(), arguments.begin(), arguments.end());
    std::string output;
    EXPECT_TRUE(run(hosts_->at_servers(command), &output).ok()) << output;
    return output;
  }

  // The load runs until it is stopped.
  [[nodiscard]] std::unique_ptr<LoadRun> start_load(const std::string& name,
                                                    const std::string& file_system,
                                                    unsigned outstanding) const {
    return std::make_unique<LoadRun>(
        LoadRunSettings{.file_system = file_system,
                        .applications = fmt::format(
                            "  - {{name: {}, size: 64 KiB, read_percent: 50, processes: 2, "
                            "file_size: 2 MiB, outstanding: {}}}\n",
                            name, outstanding),
                        .more = fmt::format("directory: /{}\n", name)},
        [this](const Command& command) { return hosts_->at_clients(command); });
  }
  void report(double pause) {
    std::printf("longest pause: %.3f s\n", pause);
    RecordProperty("longest_pause_s", std::to_string(pause));
  }

  TemporaryDirectory directory_;
  std::optional<TwoHosts> hosts_;
  std::optional<Process> proxy_;
  std::string status_file_;
};

TEST_F(Insertion, BeegfsIsInsertedAndRemovedUnderLoad) {
  Process storage(hosts_->at_servers(
      {program("vpfs-bench-beegfs-storage"), "--port", "8003", "--any-address"}));
  ASSERT_TRUE(storage.wait_for_line("ready on")) << storage.errors();
  std::string refused;
  EXPECT_FALSE(run(hosts_->at_servers({source("script/insert-beegfs")}), &refused).ok());
  EXPECT_NE(refused.find("nothing listens at port 9003"), std::string::npos) << refused;
  const std::string script = source("script/insert-beegfs");
  EXPECT_FALSE(run(hosts_->at_servers({script, "--interface", "eth00"}), &refused).ok());
  EXPECT_NE(refused.find("no interface eth00, only "), std::string::npos) << refused;

  start_proxy("beegfs", 9003, "original");
  const auto load = start_load("a", "beegfs://10.77.0.1:8003/101", 8);
  ASSERT_TRUE(load->wait_until_begun()) << load->text();
  const std::string inserted = insert("beegfs", {"--cut"});
  EXPECT_NE(inserted.find("proxy listening; 0 older connections"), std::string::npos) << inserted;
  EXPECT_TRUE(wait_for_proxied_requests(200));
  EXPECT_NE(insert("beegfs", {"--status"}).find("port 8003 -> 9003: proxy listening"),
            std::string::npos);
  EXPECT_FALSE(
      run(hosts_->at_servers({source("script/insert-beegfs"), "8103:9103", "--anyway"}), &refused)
          .ok());
  EXPECT_NE(refused.find("8003:9003 would be dropped"), std::string::npos) << refused;
  (void)insert("beegfs", {"8003:9003"});  // the same once more
  (void)insert("beegfs", {"--release"});
  EXPECT_EQ(insert("beegfs", {"--status"}), "released: nothing is redirected any more\n");
  EXPECT_TRUE(proxy_->stop(30s).ok()) << proxy_->errors();
  (void)insert("beegfs", {"--remove"});
  load->expect_good_stop();
  report(load->longest_pause());
  EXPECT_LT(load->longest_pause(), 10.0) << "the second repetition comes after five seconds";
  EXPECT_EQ(insert("beegfs", {"--status"}), "not inserted\n");
}

// A client that waits for an answer notices only if its connection is closed.
TEST_F(Insertion, RemovingEndsTheWaitOfHeldRequests) {
  Process storage(hosts_->at_servers(
      {program("vpfs-bench-beegfs-storage"), "--port", "8003", "--any-address"}));
  ASSERT_TRUE(storage.wait_for_line("ready on")) << storage.errors();
  start_proxy("beegfs", 9003, "original",
              "virtual_pfs: {default: {rate: 64 KiB/s, burst: 64 KiB}}\n");
  const auto load = start_load("a", "beegfs://10.77.0.1:8003/101", 8);
  ASSERT_TRUE(load->wait_until_begun()) << load->text();
  (void)insert("beegfs", {"--cut"});
  ASSERT_TRUE(wait_until([](const auto& pfs) { return pfs["queued_requests"] >= 8; }));
  const std::string removed = insert("beegfs", {"--remove"});
  EXPECT_EQ(removed.find("could not be closed"), std::string::npos) << removed;
  load->expect_good_stop();
  report(load->longest_pause());
  EXPECT_LT(load->longest_pause(), 20.0);
  EXPECT_TRUE(wait_until([](const auto& pfs) {
    return pfs["queued_requests"] == 0 && pfs["outstanding_requests"] == 0;
  }));
  EXPECT_EQ(proxy_->errors().find("refused: data server"), std::string::npos)
      << "the script's check is not a client: " << proxy_->errors();
  EXPECT_TRUE(proxy_->stop(30s).ok()) << proxy_->errors();
}

TEST_F(Insertion, OrangefsIsInsertedAndRemovedUnderLoad) {
  const std::string config =
      directory_.write("server.yaml",
                       "file_system: {name: vpfs, id: 1234}\n"
                       "servers: [{alias: s0, addresses: ['tcp://10.77.0.1:3334']}]\n"
                       "storage: {engine: memory}\n");
  Process server(
      hosts_->at_servers({program("vpfs-server"), "--config", config, "--server", "s0"}));
  ASSERT_TRUE(server.wait_for_line("ready on")) << server.errors();
  start_proxy("orangefs", 4334, "10.77.0.1:3334");
  const std::string address = "tcp://10.77.0.1:3334/vpfs";
  const auto before = start_load("before", address, 4);
  ASSERT_TRUE(before->wait_until_begun()) << before->text();
  (void)insert("orangefs", {});
  const auto through = start_load("through", address, 4);
  EXPECT_TRUE(wait_for_proxied_requests(200));
  (void)insert("orangefs", {"--release"});
  const auto after = start_load("after", address, 4);
  ASSERT_TRUE(after->wait_until_begun()) << after->text();
  double pause = 0;
  for (LoadRun* load : {before.get(), through.get(), after.get()}) {
    load->expect_good_stop();
    pause = std::max(pause, load->longest_pause());
  }
  report(pause);
  EXPECT_LT(pause, 1.9) << "a client that loses its connection waits for two seconds";
  EXPECT_TRUE(proxy_->stop(30s).ok()) << proxy_->errors();
  (void)insert("orangefs", {"--remove"});
}

TEST(InsertionScript, SaysWhatItWouldDoAndWhatIsWrong) {
  const auto output_of = [](const Command& command, int code) {
    std::string output;
    EXPECT_EQ(run(command, &output).code, code) << output;
    return output;
  };
  const std::string beegfs = source("script/insert-beegfs");
  const std::string rules = output_of({beegfs, "8003:9003", "8013:9013", "--dry-run"}, 0);
  EXPECT_NE(rules.find("== syn redirect to :9013"), std::string::npos);
  EXPECT_NE(rules.find("ip daddr != 127.0.0.0/8 tcp dport 8003 tcp flags"), std::string::npos);
  EXPECT_NE(output_of({beegfs, "80"}, 2).find("'80' is not SERVER_PORT:PROXY_PORT"),
            std::string::npos);
  EXPECT_NE(output_of({beegfs, "80:80"}, 2).find("redirects a port to itself"), std::string::npos);
  EXPECT_NE(output_of({beegfs, "80:81", "80:82"}, 2).find("port 80 is redirected twice"),
            std::string::npos);
  EXPECT_NE(output_of({beegfs, "8003:9003", "--remove"}, 2).find("for all ports: leave the pairs"),
            std::string::npos);
  EXPECT_NE(output_of({beegfs, "--interface", "a \"b"}, 2).find("not a name of an interface"),
            std::string::npos);
  TemporaryDirectory directory;
  const std::string fs_conf = directory.write(
      "fs.conf", "<Aliases>\n  Alias s0 tcp://h0:3334,ib://h0:1,tcp-px://h0:1\n</Aliases>\n");
  const std::string orangefs = source("script/insert-orangefs");
  EXPECT_NE(output_of({orangefs, "--zones", fs_conf}, 0)
                .find("Alias s0 tcp://h0:3334,ib://h0:1,tcp-px://h0:4334\n"),
            std::string::npos);
  // A file is found from the user's own folder.
  EXPECT_NE(output_of({"env", "-C", directory.path(), orangefs, "--zones", "fs.conf"}, 0)
                .find("Alias s0 tcp://h0:3334,ib://h0:1,tcp-px://h0:4334\n"),
            std::string::npos);
  EXPECT_NE(output_of({orangefs, "1:2", "--zones", fs_conf}, 1)
                .find("s0 listens at port 3334: say 3334:PROXY_PORT"),
            std::string::npos);
  EXPECT_NE(output_of({orangefs, "--zones", "/nowhere"}, 1).find("No such file"),
            std::string::npos);
}

}  // namespace
}  // namespace vpfs::test
