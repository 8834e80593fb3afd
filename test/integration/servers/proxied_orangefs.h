#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "test/support/proxy_process.h"
#include "test/support/servers/orangefs_servers.h"

namespace vpfs::test {

// A test with OrangeFS's own servers, a proxy in front of each, and OrangeFS's own programs. It is
// skipped where they are not installed. At the end the proxies have lost nothing.
class ProxiedOrangefs : public ::testing::Test {
 protected:
  static constexpr const char* kSound = "appears to be correctly configured";

  void SetUp() override {
    const auto program = OrangefsServers::find();
    const auto tools = OrangefsServers::find_tools();
    if (!program || !tools) {
      GTEST_SKIP() << "no OrangeFS: set VPFS_ORANGEFS_PREFIX, or PATH to pvfs2-server";
    }
    tools_ = *tools;
    servers_.emplace(*program, [this](std::uint16_t server) {
      proxies_.push_back(std::make_unique<ProxyProcess>(settings(server)));
      return proxies_.back()->port();
    });
    direct_ = table("direct", servers_->address());
    proxied_ = table("proxied", servers_->proxied_address());
    // Servers need seconds to start and to fill their pools of handles. Until then pvfs2-ping may
    // report problems, and still exit with 0.
    std::string ping;
    for (int i = 0; i < 100 && !ping.contains(kSound); ++i) {
      ping = tool(direct_, "pvfs2-ping", {"-m", "/v"});
    }
    ASSERT_THAT(ping, ::testing::HasSubstr(kSound)) << servers_->errors();
  }

  // Those of the proxy in front of a server.
  [[nodiscard]] virtual ProxySettings settings(std::uint16_t server) const {
    return {.upstream = server, .depth = 4, .timeouts = "hold_min: 10 s"};
  }

  void TearDown() override {
    for (const auto& proxy : proxies_) {
      EXPECT_TRUE(proxy->wait_until_idle());
      const nlohmann::json now = proxy->status();
      EXPECT_GT(now["virtual_pfs"][0]["done_requests"], 0) << "this server was not used";
      EXPECT_EQ(now["counters"]["requests_refused"], 0);
      EXPECT_EQ(now["counters"]["slots_given_up"], 0);
      EXPECT_EQ(now["counters"]["framing_errors"], 0);
    }
  }

  // A table of mounts.
  std::string table(const std::string& name, const std::string& address) {
    return directory_.write(name, address + " /v pvfs2 defaults,noauto 0 0\n");
  }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }

  // Like run_orangefs_tool().
  std::string tool(const std::string& mounts, const std::string& name,
                   std::vector<std::string> arguments) {
    return run_orangefs_tool(tools_ + "/" + name, std::move(arguments), mounts);
  }
  std::string random_file(const std::string& name, std::size_t size) {
    return directory_.write(name, random_bytes(size));
  }

  // Why nothing can be mounted by OrangeFS's own FUSE client; "": it can.
  [[nodiscard]] std::string why_no_pvfs2fuse() const {
    if (!std::filesystem::exists(tools_ + "/pvfs2fuse")) return "there is no pvfs2fuse";
    return ::access("/dev/fuse", R_OK | W_OK) == 0 ? "" : "there is no /dev/fuse";
  }

  // The file system mounted through the proxies by pvfs2fuse.
  class FuseMount {
   public:
    explicit FuseMount(ProxiedOrangefs& test) : path_(test.path("mount")) {
      std::filesystem::create_directory(path_);
      process_.emplace(
          std::vector<std::string>{test.tools_ + "/pvfs2fuse", "-f", "-o",
                                   "fs_spec=" + test.servers_->proxied_address(), path_},
          std::vector<std::pair<std::string, std::string>>{{"PVFS2TAB_FILE", test.proxied_}});
      for (int i = 0; i < 100 && !is_mounted(); ++i) std::this_thread::sleep_for(50ms);
      EXPECT_TRUE(is_mounted()) << process_->errors();
    }
    ~FuseMount() {
      Process({"umount", "-l", path_}).wait();
      process_->stop();
    }
    FuseMount(const FuseMount&) = delete;
    FuseMount& operator=(const FuseMount&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] Process& process() { return *process_; }

   private:
    [[nodiscard]] bool is_mounted() const {
      return Process({"mountpoint", "-q", path_}).wait().value_or(Process::Exit{}).ok();
    }

    std::string path_;
    std::optional<Process> process_;
  };

  TemporaryDirectory directory_;
  std::vector<std::unique_ptr<ProxyProcess>> proxies_;
  std::optional<OrangefsServers> servers_;
  std::string tools_;
  std::string direct_;  // tables of mounts
  std::string proxied_;
};

}  // namespace vpfs::test
