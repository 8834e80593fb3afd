// Rules change through vpfsctl while vpfs-load runs through vpfs-proxy to vpfs-server and verifies
// every block.

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/load_run.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"
#include "test/tools/vpfsctl/proxies.h"

namespace vpfs::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LiveLoad : public ::testing::Test {
 protected:
  LiveLoad()
      : proxy_({.upstream = server_port_.number(),
                .workers = 2,
                .depth = 8,
                .control = fmt::format("socket: {0}/px.sock, journal: {0}/journal",
                                       directory_.path().string()),
                .virtual_pfs = "'job-{jobid}': {weight: 1}",
                .rules = "[{name: jobs, match: {hint: {jobid: '*'}}, "
                         "virtual_pfs: 'job-{jobid}'}]"}) {
    const std::string config = directory_.write(
        "server.yaml",
        fmt::format("file_system: {{name: vpfs, id: 1234}}\n"
                    "servers: [{{alias: s0, addresses: ['tcp://{}', 'tcp-px://127.0.0.1:{}']}}]\n"
                    "storage: {{engine: memory}}\n"
                    "device: {{bandwidth: 50 MiB/s}}\n",
                    server_port_.address(), proxy_.port()));
    server_.emplace(std::vector<std::string>{program("vpfs-server"), "--config", config});
    if (!server_->wait_for_line("ready on")) throw std::runtime_error(server_->errors());
  }

  void run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--proxy", directory_.path() / "px.sock"});
    const Outcome outcome = vpfsctl(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  }

  TemporaryDirectory directory_;
  ReservedPort server_port_;
  ProxyProcess proxy_;
  std::optional<Process> server_;
};

TEST_F(LiveLoad, NoByteIsWrongAndNoRequestFailsWhileRulesJobsAndBypassChange) {
  LoadRun load({.file_system = fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxy_.port()),
                .applications = "  - {name: a, size: 64 KiB, outstanding: 8, read_percent: 50, "
                                "file_size: 4 MiB}\n"
                                "  - {name: b, size: 64 KiB, outstanding: 8, read_percent: 50, "
                                "file_size: 4 MiB}\n"});
  ASSERT_TRUE(load.wait_until_begun());
  const std::string set =
      directory_.write("set.yaml", "rules: [{name: few, match: 'jobid=b', weight: 2, iops: 1k}]\n");
  for (int round = 0; round < 4; ++round) {
    run({"rule", "start", "night", "jobid=a", "weight=4", "rate=20MiB/s"});
    run({"rule", "change", "night", "weight=8"});
    run({"job", "start", "a", "--nodes", "2", "--uid", "0", "--clients", "127.0.0.1"});
    run({"bypass", "on"});
    run({"who"});
    run({"bypass", "off"});
    run({"rule", "stop", "night"});
    run({"rule", "apply", "-f", set, "--confirm", "60s"});
    run({"rule", "confirm"});
    run({"reload"});
    run({"job", "stop", "a"});
    run({"rule", "stop", "few"});
    run({"stat"});
  }
  load.expect_good_stop();
  EXPECT_TRUE(proxy_.wait_until_idle());
  EXPECT_EQ(proxy_.status()["counters"]["framing_errors"], 0);
}

// The line of `stat` about a job.
std::string line_about(const std::string& job, const std::string& text) {
  const std::size_t begin = text.find("\n" + job + " ");
  if (begin == std::string::npos) return "";
  return text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
}

// With one request in flight, an application gets less than a share of 4.
TEST_F(LiveLoad, StatNamesAnApplicationThatMissesItsShareForLackOfAQueue) {
  if (programs_have_sanitizer()) GTEST_SKIP() << "slow programs leave the server idle";
  run({"rule", "start", "few", "jobid=few", "weight=4"});
  LoadRun load({.file_system = fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxy_.port()),
                .applications = "  - {name: few, size: 64 KiB, outstanding: 1, read_percent: 50, "
                                "file_size: 4 MiB}\n"
                                "  - {name: many, size: 64 KiB, outstanding: 24, read_percent: 50, "
                                "file_size: 4 MiB}\n"
                                "  - {name: idle, size: 64 KiB, outstanding: 1, think: 300 ms, "
                                "read_percent: 50, file_size: 4 MiB}\n"});
  ASSERT_TRUE(load.wait_until_begun());
  const auto stat = [this] {
    return vpfsctl({"stat", "--proxy", directory_.path() / "px.sock"}).output;
  };
  std::string text;
  for (int i = 0; i < 20 && !line_about("few", text).contains("keeps no queue"); ++i) text = stat();
  EXPECT_THAT(line_about("few", text), HasSubstr("keeps no queue")) << text;
  EXPECT_THAT(line_about("job-many", text), Not(HasSubstr("keeps no queue"))) << text;
  EXPECT_THAT(line_about("job-idle", text), Not(HasSubstr("keeps no queue"))) << text;
  EXPECT_TRUE(proxy_.wait_until([](const nlohmann::json& status) {
    const auto& rows = status["virtual_pfs"];
    const auto few = std::ranges::find(rows, "few", [](const auto& row) { return row["name"]; });
    return few != rows.end() && few->value("keeps_no_queue", false) &&
           (*few)["in_flight_us"]["without_queue"] > 0;
  })) << proxy_.status().dump(2);
  load.expect_good_stop();
}

}  // namespace
}  // namespace vpfs::test
