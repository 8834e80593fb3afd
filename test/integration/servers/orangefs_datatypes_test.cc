// OrangeFS's own client library reads and writes datatypes with holes, directly and through
// vpfs-proxy. The bytes are the same, and all slots come back.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/places.h"
#include "test/support/proxy_process.h"
#include "test/support/servers/orangefs_servers.h"

namespace vpfs::test {
namespace {

using testing::HasSubstr;
using testing::Not;

struct FlowSetting {
  std::string distribution;
  std::size_t flow_buffer_size = 0;
};

class OrangefsDatatypes : public testing::TestWithParam<FlowSetting> {
 protected:
  void SetUp() override {
    const auto program = OrangefsServers::find();
    const auto tools = OrangefsServers::find_tools();
    if (!program || !tools) {
      GTEST_SKIP() << "no OrangeFS: set VPFS_ORANGEFS_PREFIX, or PATH to pvfs2-server";
    }
    const std::filesystem::path prefix = std::filesystem::path(*tools).parent_path();
    if (!std::filesystem::exists(prefix / "include/pvfs2.h")) {
      GTEST_SKIP() << "OrangeFS is installed without pvfs2.h";
    }
    client_ = (directory_.path() / "datatype_client").string();
    const std::string library = (prefix / "lib").string();
    Process compiler({"cc", "-O1", "-I" + (prefix / "include").string(),
                      source("test/integration/servers/datatype_client.c"), "-o", client_,
                      "-L" + library, "-lpvfs2", "-Wl,-rpath," + library});
    const auto exit = compiler.wait(60s);
    ASSERT_TRUE(exit && exit->ok()) << compiler.errors();
    start_servers(*program, *tools);
  }

  void start_servers(const std::string& program, const std::string& tools) {
    servers_.emplace(
        program,
        [this](std::uint16_t server) {
          proxies_.push_back(
              std::make_unique<ProxyProcess>(ProxySettings{.upstream = server, .depth = 4}));
          return proxies_.back()->port();
        },
        // With alt-aio most runs hang in OrangeFS itself; with more buffers some do.
        OrangefsServers::Settings{.flow_buffer_size = GetParam().flow_buffer_size,
                                  .flow_buffers = 2,
                                  .trove_method = "directio"});
    direct_ = table("direct", servers_->address());
    proxied_ = table("proxied", servers_->proxied_address());
    std::string ping;
    for (int i = 0; i < 100 && !ping.contains("correctly configured"); ++i) {
      ping = run_orangefs_tool(tools + "/pvfs2-ping", {"-m", "/v"}, direct_);
    }
    ASSERT_THAT(ping, HasSubstr("correctly configured")) << servers_->errors();
  }

  std::string table(const std::string& name, const std::string& address) {
    return directory_.write(name, address + " /v pvfs2 defaults,noauto 0 0\n");
  }

  // Returns what the client printed. Even without a proxy, OrangeFS's servers sometimes never
  // answer a strided read, so one good run in five is enough. A proxy that lost slots would have
  // none.
  std::string run(const std::string& mounts) {
    for (int attempt = 0; attempt < 5; ++attempt) {
      Process client({client_, "/v/", GetParam().distribution}, {{"PVFS2TAB_FILE", mounts}});
      const auto exit = client.wait(20s);
      if (exit) return client.output() + client.errors() + (exit->ok() ? "" : "FAILED");
      (void)client.kill();
    }
    return "FAILED: it never came to an end";
  }

  TemporaryDirectory directory_;
  std::vector<std::unique_ptr<ProxyProcess>> proxies_;
  std::optional<OrangefsServers> servers_;
  std::string client_;
  std::string direct_;  // mount tables
  std::string proxied_;
};

TEST_P(OrangefsDatatypes, ThroughAProxyAreTheSameAndKeepNoSlot) {
  const std::string direct = run(direct_);
  ASSERT_THAT(direct, Not(HasSubstr("FAILED"))) << servers_->errors();
  EXPECT_THAT(direct, Not(HasSubstr("WRONG")));
  const std::string proxied = run(proxied_);
  EXPECT_EQ(proxied, direct);
  for (const auto& proxy : proxies_) {
    EXPECT_TRUE(proxy->wait_for_outstanding(0));
    const nlohmann::json now = proxy->status();
    EXPECT_GT(now["virtual_pfs"][0]["done_requests"], 100);
    EXPECT_EQ(now["counters"]["slots_given_up"], 0);
    EXPECT_EQ(now["counters"]["framing_errors"], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, OrangefsDatatypes,
    testing::Values(FlowSetting{"simple_stripe", 262'144}, FlowSetting{"simple_stripe", 65'536},
                    FlowSetting{"twod_stripe", 262'144}, FlowSetting{"twod_stripe", 1'048'576}),
    [](const auto& info) {
      return info.param.distribution + "_" + std::to_string(info.param.flow_buffer_size);
    });

}  // namespace
}  // namespace vpfs::test
