// Hand-overs under load, with verified data: no client notices.

#include <algorithm>
#include <csignal>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/load_run.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"
#include "test/support/servers/beegfs_storage.h"

namespace vpfs::test {
namespace {

constexpr const char* kLoadInHandover =
    "  - {name: large, processes: 4, outstanding: 4, size: 1 MiB, read_percent: 50,\n"
    "     pattern: random, file_size: 16 MiB}\n"
    "  - {name: huge, processes: 2, outstanding: 2, size: 4 MiB, read_percent: 50,\n"
    "     pattern: random, file_size: 32 MiB}\n"
    "  - {name: small, processes: 4, outstanding: 8, size: 16 KiB, read_percent: 50,\n"
    "     pattern: random, file_size: 4 MiB}\n"
    "  - {name: alone, processes: 4, outstanding: 1, size: 4 KiB, read_percent: 100,\n"
    "     pattern: random, file_size: 1 MiB}\n";

// Settings of a proxy with shares, and a rate where the policy has rates.
ProxySettings settings_for_load(std::uint16_t upstream, const std::string& protocol,
                                const std::string& policy, unsigned workers) {
  const bool has_rates = policy == "sfq" || policy == "tbf";
  const char* const rules = protocol == "beegfs"
                                ? "[{match: {uid: 1001}, virtual_pfs: large},\n"
                                  "        {match: {uid: 1002}, virtual_pfs: small}]"
                                : "[{match: {jobid: large}, virtual_pfs: large},\n"
                                  "        {match: {jobid: huge}, virtual_pfs: huge},\n"
                                  "        {match: {jobid: small}, virtual_pfs: small}]";
  return {.upstream = upstream,
          .protocol = protocol,
          .workers = workers,
          .policy = policy,
          .depth = 8,
          .virtual_pfs =
              fmt::format("large: {{weight: 3}}, huge: {{weight: 1}}, small: {{weight: 2{}}}",
                          has_rates ? ", rate: 100 MiB/s" : ""),
          .rules = rules};
}

// Hands over again and again while the load runs.
void expect_unnoticed(ProxyProcess& proxy, LoadRun& load, std::uint16_t upstream,
                      const std::string& protocol, const std::vector<std::string>& policies,
                      std::size_t hand_overs) {
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  std::vector<Process> olds;
  for (std::size_t round = 0; round < hand_overs; ++round) {
    const std::string& policy = policies[round % policies.size()];
    const auto workers = static_cast<unsigned>(1 + round % 2);
    proxy.use_config(proxy.write_config(settings_for_load(upstream, protocol, policy, workers),
                                        fmt::format("{}.yaml", round % 8)));
    olds.push_back(proxy.hand_over());
    std::this_thread::sleep_for(50ms);
  }
  load.expect_good_stop();
  for (Process& old : olds) {
    const auto exit = old.wait(60s);
    ASSERT_TRUE(exit) << old.errors();
    EXPECT_TRUE(exit->ok()) << "signal " << exit->signal << old.errors();
    EXPECT_EQ(old.errors().find("restart.drain"), std::string::npos) << old.errors();
  }
  EXPECT_TRUE(proxy.wait_until_idle());
  const nlohmann::json status = proxy.status();
  EXPECT_EQ(status["counters"]["framing_errors"], 0);
  EXPECT_EQ(status["counters"]["requests_refused"], 0);
  for (const auto& row : status["virtual_pfs"]) {
    EXPECT_EQ(row["failed_requests"], 0) << row["name"];
    EXPECT_EQ(row["queued_requests"], 0) << row["name"];
    EXPECT_EQ(row["outstanding_requests"], 0) << row["name"];
  }
}

void expect_unnoticed_by_orangefs(const std::vector<std::string>& policies,
                                  std::size_t hand_overs) {
  const ReservedPort port;
  ProxyProcess proxy(settings_for_load(port.number(), "orangefs", policies.front(), 2));
  const TemporaryDirectory directory;
  const std::string config =
      directory.write("server.yaml", fmt::format("file_system: {{name: vpfs, id: 1234}}\n"
                                                 "storage: {{engine: memory, capacity: 1 GiB}}\n"
                                                 "servers: [{{alias: s0, addresses: ['tcp://{}', "
                                                 "'tcp-px://127.0.0.1:{}']}}]\n",
                                                 port.address(), proxy.port()));
  Process server({program("vpfs-server"), "--server", "s0", "--config", config});
  ASSERT_TRUE(server.wait_for_line("ready")) << server.errors();
  LoadRun load({.file_system = fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxy.port()),
                .applications = kLoadInHandover,
                .duration = ""});
  expect_unnoticed(proxy, load, port.number(), "orangefs", policies, hand_overs);
}

TEST(HandoverLoad, VerifiedReadsAndWritesNoticeNothing) {
  expect_unnoticed_by_orangefs({"sfq"}, 20);
}

TEST(HandoverLoad, NorDoTheyWhenThePolicyAndTheWorkersChangeEachTime) {
  expect_unnoticed_by_orangefs({"sfq", "tbf", "adaptbf", "edf", "fifo"}, 20);
}

TEST(HandoverLoad, NorDoClientsOfBeegfs) {
  BeegfsStorage storage({.device = DeviceSettings{.bandwidth = {200 * kMiB},
                                                  .per_request = std::chrono::microseconds(200),
                                                  .parallelism = 8}});
  ProxyProcess proxy(settings_for_load(storage.port(), "beegfs", "sfq", 2));
  LoadRun load({.file_system = fmt::format("beegfs://127.0.0.1:{}/101", proxy.port()),
                .applications =
                    "  - {name: large, uid: 1001, processes: 2, connections: 4, outstanding: 4,\n"
                    "     size: 1 MiB, read_percent: 50, pattern: random, file_size: 16 MiB}\n"
                    "  - {name: small, uid: 1002, processes: 2, connections: 4, outstanding: 4,\n"
                    "     size: 16 KiB, read_percent: 50, pattern: random, file_size: 2 MiB}\n",
                .duration = ""});
  expect_unnoticed(proxy, load, storage.port(), "beegfs", {"sfq", "tbf", "fifo"}, 20);
}

}  // namespace
}  // namespace vpfs::test
