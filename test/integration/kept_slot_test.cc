// What a real vpfs-proxy and vpfsctl say while a slot is kept for an application that thinks
// between its requests. Whether one is kept depends on how even these times are, so the machine has
// nothing else to do meanwhile.

#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/load_run.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

constexpr const char* kReason = "a slot is kept for job-thinker";

class KeptSlot : public ::testing::Test {
 protected:
  KeptSlot()
      : proxy_({.upstream = server_port_.number(),
                .depth = 4,
                .scheduler = "sfq: {anticipation: on}",
                .control = fmt::format("socket: {0}/px.sock, journal: {0}/journal",
                                       directory_.path().string()),
                .virtual_pfs = "job-thinker: {weight: 8}, job-batch: {weight: 1}",
                .rules = "[{match: {hint: {jobid: thinker}}, virtual_pfs: job-thinker},"
                         " {match: {hint: {jobid: batch}}, virtual_pfs: job-batch}]"}) {
    const std::string config = directory_.write(
        "server.yaml",
        fmt::format("file_system: {{name: vpfs, id: 1234}}\n"
                    "servers: [{{alias: s0, addresses: ['tcp://{}', 'tcp-px://127.0.0.1:{}']}}]\n"
                    "storage: {{engine: memory}}\n"
                    "device: {{bandwidth: 16 MiB/s}}\n",
                    server_port_.address(), proxy_.port()));
    server_.emplace(std::vector<std::string>{program("vpfs-server"), "--config", config});
    if (!server_->wait_for_line("ready on")) throw std::runtime_error(server_->errors());
  }

  static nlohmann::json row_of(const nlohmann::json& status, const std::string& name) {
    for (const auto& each : status["virtual_pfs"]) {
      if (each["name"] == name) return each;
    }
    return {};
  }

  TemporaryDirectory directory_;
  ReservedPort server_port_;
  ProxyProcess proxy_;
  std::optional<Process> server_;
};

TEST_F(KeptSlot, StatusFileAndVpfsctlSayForWhichFlow) {
  LoadRun load({.file_system = fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxy_.port()),
                .applications = "  - {name: thinker, jobid: thinker, size: 64 KiB, outstanding: 1, "
                                "file_size: 4 MiB}\n"
                                "  - {name: batch, jobid: batch, size: 64 KiB, outstanding: 16, "
                                "file_size: 4 MiB}\n"});
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  EXPECT_TRUE(proxy_.wait_until([](const nlohmann::json& status) {
    return row_of(status, "job-batch").value("oldest_waits_for", "") == kReason;
  }));
  std::string seen;
  for (int i = 0; i < 200 && seen.find(kReason) == std::string::npos; ++i) {
    Process top({program("vpfsctl"), "top", "--plain", "-n", "1", "-d", "100ms", "--proxy",
                 directory_.path() / "px.sock"});
    const auto exit = top.wait();
    ASSERT_TRUE(exit && exit->ok()) << top.errors();
    seen = top.output();
  }
  EXPECT_NE(seen.find(kReason), std::string::npos) << seen;
  const nlohmann::json status = proxy_.status();
  EXPECT_GT(status["slots_kept_us"], 0);
  EXPECT_EQ(row_of(status, "job-batch")["slots_kept_us"], 0);
  load.expect_good_stop();

  // No slot is left behind.
  EXPECT_TRUE(proxy_.wait_until_idle());
  const nlohmann::json after = proxy_.status();
  EXPECT_EQ(after["outstanding"], 0);
  EXPECT_EQ(after["slots_kept_us"], proxy_.status()["slots_kept_us"]);
}

}  // namespace
}  // namespace vpfs::test
