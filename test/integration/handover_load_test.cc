// Hand-overs under load, with verified data: no client notices.

#include <algorithm>
#include <csignal>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/load_run.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

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

// The proxy of an embedded server.
ProxySettings settings_for_load(std::uint16_t upstream, const std::string& policy,
                                unsigned workers) {
  return {.upstream = upstream,
          .workers = workers,
          .policy = policy,
          .depth = 8,
          .virtual_pfs = fmt::format("large: {{weight: 3}}, small: {{weight: 2{}}}",
                                     policy == "sfq" || policy == "tbf" ? ", rate: 100 MiB/s" : ""),
          .rules =
              "[{match: {jobid: large}, virtual_pfs: large},\n"
              "        {match: {jobid: small}, virtual_pfs: small}]"};
}

// Hands over again and again while the load runs.
void expect_unnoticed(const std::vector<std::string>& policies, int hand_overs) {
  const ReservedPort port;
  ProxySettings settings = settings_for_load(port.number(), policies.front(), 2);
  ProxyProcess proxy(settings);
  const TemporaryDirectory directory;
  Process server(
      {program("vpfs-server"), "--server", "s0", "--config",
       directory.write("server.yaml", fmt::format("file_system: {{name: vpfs, id: 1234}}\n"
                                                  "storage: {{engine: memory, capacity: 1 GiB}}\n"
                                                  "servers: [{{alias: s0, addresses: ['tcp://{}', "
                                                  "'tcp-px://127.0.0.1:{}']}}]\n",
                                                  port.address(), proxy.port()))});
  ASSERT_TRUE(server.wait_for_line("ready")) << server.errors();
  LoadRun load({.file_system = fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxy.port()),
                .applications = kLoadInHandover,
                .duration = ""});
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  std::vector<Process> olds;
  for (int round = 0; round < hand_overs; ++round) {
    settings.policy = policies[static_cast<std::size_t>(round) % policies.size()];
    settings.workers = 1 + static_cast<unsigned>(round) % 2;
    proxy.use_config(proxy.write_config(settings, fmt::format("{}.yaml", round % 8)));
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

TEST(HandoverLoad, VerifiedReadsAndWritesNoticeNothing) {
  expect_unnoticed({"sfq"}, 20);
}

TEST(HandoverLoad, NorDoTheyWhenThePolicyAndTheWorkersChangeEachTime) {
  expect_unnoticed({"sfq", "tbf", "adaptbf", "edf", "fifo"}, 20);
}

}  // namespace
}  // namespace vpfs::test
