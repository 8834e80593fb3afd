// A client claims many job ids. With `jobs: trust` it takes the victim's bandwidth that way, with
// `jobs: registered` it does not.

#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/clock/by_clock.h"
#include "test/support/io_messages.h"
#include "test/support/load_run.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

constexpr int kFalseIds = 50;

// In the form of ProxySettings::whole. `jobs` has the top-level keys under test.
std::string configuration(const std::string& jobs) {
  return "proxy: {{listen: {listen}, upstream: {upstream}, status_file: '{status_file}'}}\n"
         "scheduler:\n"
         "  policy: sfq\n"
         "  depth: {{requests: 16}}\n"
         "  cost: {{per_request: 0}}\n"
         "virtual_pfs:\n"
         "  'job-{{jobid}}': {{weight: 1}}\n"
         "  default: {{weight: 1}}\n"
         "rules:\n"
         "  - {{match: {{hint: {{jobid: '*'}}}}, virtual_pfs: 'job-{{jobid}}'}}\n" +
         jobs;
}

constexpr const char* kRegistered =
    "jobs: registered\n"
    "registered_jobs:\n"
    "  - {{jobid: victim, client: 127.0.0.0/8}}\n"
    "  - {{jobid: elsewhere, client: [10.9.9.9, 10.8.0.0/16]}}\n";

// One victim, and one client that claims kFalseIds jobs. One of these belongs to another node.
std::string applications() {
  std::string all = "  - {name: victim, size: 64 KiB, outstanding: 64, file_size: 8 MiB}\n";
  for (int i = 1; i <= kFalseIds; ++i) {
    const std::string id = i == 1 ? "elsewhere" : fmt::format("false-{}", i);
    all += fmt::format("  - {{name: {}, size: 64 KiB, outstanding: 4, file_size: 1 MiB}}\n", id);
  }
  return all;
}

class FalseJobIds : public ::testing::Test {
 protected:
  FalseJobIds()
      : proxy_({.upstream = server_port_.number(), .whole = configuration("jobs: trust\n")}) {
    const std::string config = directory_.write(
        "server.yaml",
        fmt::format("file_system: {{name: vpfs, id: 1234}}\n"
                    "servers: [{{alias: s0, addresses: ['tcp://{}', 'tcp-px://127.0.0.1:{}']}}]\n"
                    "storage: {{engine: memory}}\n"
                    "device: {{bandwidth: 32 MiB/s}}\n",
                    server_port_.address(), proxy_.port()));
    server_.emplace(std::vector<std::string>{program("vpfs-server"), "--config", config});
    if (!server_->wait_for_line("ready on")) throw std::runtime_error(server_->errors());
  }

  // The victim's fraction of all bytes in a run of a few seconds.
  [[nodiscard]] double victims_part() {
    LoadRun load({.file_system = fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxy_.port()),
                  .applications = applications(),
                  .duration = "3 s",
                  .warm_up = "1 s",
                  .everybody_served = false});
    load.expect_good_end();
    const double part = load.mib_per_second("victim") / load.total_mib_per_second();
    std::cout << "the victim has " << part << " of " << load.total_mib_per_second() << " MiB/s\n";
    return part;
  }

  TemporaryDirectory directory_;
  ReservedPort server_port_;
  ProxyProcess proxy_;
  std::optional<Process> server_;
};

TEST_F(FalseJobIds, LeaveTheVictimItsHalfWhenJobsAreRegistered) {
  EXPECT_LT(victims_part(), 0.1) << "with trust every id has a share of its own" << kByClock;
  EXPECT_EQ(proxy_.status()["counters"]["jobs_not_registered"], 0);

  proxy_.reload({.upstream = server_port_.number(), .whole = configuration(kRegistered)});
  ASSERT_EQ(proxy_.status()["reloads"]["failed"], 0) << proxy_.status()["reloads"].dump();
  EXPECT_NEAR(victims_part(), 0.5, 0.05) << kByClock;
  ASSERT_TRUE(proxy_.wait_until_idle());
  const nlohmann::json now = proxy_.status();
  EXPECT_GT(now["counters"]["jobs_not_registered"], kFalseIds);
  EXPECT_EQ(now["virtual_pfs"][0]["done_requests"], now["counters"]["jobs_not_registered"])
      << "they are all in default";
  EXPECT_EQ(proxy_.lines_with("its job id is not registered for it"), 1U);

  const std::string wrong = configuration(
      "jobs: registered\n"
      "registered_jobs: [{{jobid: a, client: ::1}}, {{jobid: a, client: ::1}}]\n");
  proxy_.reload({.upstream = server_port_.number(), .whole = wrong});
  EXPECT_EQ(proxy_.status()["reloads"]["failed"], 1);
  EXPECT_TRUE(proxy_.logs("registered_jobs[1].jobid: the job 'a' is registered already"));
}

}  // namespace
}  // namespace vpfs::test
