// vpfs-proxy in front of OrangeFS's own servers, used by OrangeFS's own programs and by the client
// library.

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

#include "base/system_clock.h"
#include "test/support/client_checks.h"
#include "test/support/proxy_process.h"
#include "test/support/run_task.h"
#include "test/support/servers/orangefs_servers.h"

namespace vpfs::test {
namespace {

using testing::HasSubstr;

constexpr const char* kSound = "appears to be correctly configured";

class ProxiedOrangefs : public testing::Test {
 protected:
  void SetUp() override {
    const auto program = OrangefsServers::find();
    const auto tools = OrangefsServers::find_tools();
    if (!program || !tools) {
      GTEST_SKIP() << "no OrangeFS: set VPFS_ORANGEFS_PREFIX, or PATH to pvfs2-server";
    }
    tools_ = *tools;
    servers_.emplace(*program, [this](std::uint16_t server) {
      proxies_.push_back(std::make_unique<ProxyProcess>(
          ProxySettings{.upstream = server, .depth = 4, .timeouts = "hold_min: 10 s"}));
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
    ASSERT_THAT(ping, HasSubstr(kSound)) << servers_->errors();
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

  TemporaryDirectory directory_;
  std::vector<std::unique_ptr<ProxyProcess>> proxies_;
  std::optional<OrangefsServers> servers_;
  std::string tools_;
  std::string direct_;  // mount tables
  std::string proxied_;
};

TEST_F(ProxiedOrangefs, PingAndCopiesGoThrough) {
  EXPECT_THAT(tool(proxied_, "pvfs2-ping", {"-m", "/v"}), HasSubstr(kSound));
  for (const std::size_t size : {0U, 1U, 5000U, 65536U, 200'001U, 10'000'001U}) {
    const std::string file = random_file("f", size);
    const std::string there = "/v/f" + std::to_string(size);
    EXPECT_EQ(tool(proxied_, "pvfs2-cp", {file, there}), "");
    for (const std::string& mounts : {direct_, proxied_}) {
      EXPECT_EQ(tool(mounts, "pvfs2-cp", {there, path("back")}), "");
      EXPECT_TRUE(read_text(path("back")) == read_text(file)) << there;
    }
    EXPECT_THAT(tool(proxied_, "pvfs2-ls", {"-l", "/v"}), HasSubstr(std::to_string(size)));
  }
}

TEST_F(ProxiedOrangefs, TheClientLibraryReadsWhatItWrote) {
  asio::io_context loop;
  const SystemClock clock;
  const auto address = client::parse_mount_address(servers_->proxied_address());
  ASSERT_TRUE(address);
  auto mounted = run_task(loop, client::FileSystem::mount(*address, {.connections = 2}, clock));
  ASSERT_TRUE(mounted) << mounted.error().message;
  check_names(loop, **mounted);
  check_data(loop, **mounted, 3);
  check_concurrent_io(loop, **mounted);
  (*mounted)->close();
  drain(loop);
  EXPECT_TRUE(proxies_[0]->logs("requests are held for 24 s at most")) << "80 % of 30 s";
}

TEST_F(ProxiedOrangefs, AFuseMountKeepsItsData) {
  if (!std::filesystem::exists(tools_ + "/pvfs2fuse") || ::access("/dev/fuse", R_OK | W_OK) != 0) {
    EXPECT_EQ(tool(proxied_, "pvfs2-cp", {random_file("f", 500'000), "/v/f"}), "");
    GTEST_SKIP() << "no pvfs2fuse, or no /dev/fuse";
  }
  const std::string file = random_file("f", 3'000'001);
  const std::string mount = path("mount");
  std::filesystem::create_directory(mount);
  Process fuse({tools_ + "/pvfs2fuse", "-f", "-o", "fs_spec=" + servers_->proxied_address(), mount},
               {{"PVFS2TAB_FILE", proxied_}});
  const auto mounted = [&] {
    return Process({"mountpoint", "-q", mount}).wait().value_or(Process::Exit{}).ok();
  };
  for (int i = 0; i < 100 && !mounted(); ++i) std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(mounted()) << fuse.errors();
  const std::string script = directory_.write("script", R"(
    cd "$1" || exit 1
    for i in 1 2 3 4; do cp "$2" f$i & done; wait
    for i in 1 2 3 4; do cmp "$2" f$i & done; wait
    dd if="$2" of=small bs=4k count=100 status=none && cmp -n 409600 "$2" small
    mv f1 f2 && cmp "$2" f2 && rm f3 && ls -I lost+found
  )");
  Process shell({"/bin/sh", script, mount, file});
  const auto exit = shell.wait(120s);
  EXPECT_TRUE(exit && exit->ok());
  EXPECT_EQ(shell.output() + shell.errors(), "f2\nf4\nsmall\n");
  Process({"umount", "-l", mount}).wait();
  fuse.stop();
}

}  // namespace
}  // namespace vpfs::test
