// Applications that share the few connections of their node to a BeeGFS storage server, through a
// real vpfs-proxy.

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/clock/by_clock.h"
#include "test/support/load_run.h"
#include "test/support/servers/beegfs_storage.h"
#include "test/support/servers/proxy_beegfs.h"

namespace vpfs::test {
namespace {

constexpr std::uint32_t kQuick = 2000;  // uids
constexpr std::uint32_t kSlow = 3001;   // and up
constexpr int kTasks = 16;              // of each slow application

StorageSettings storage_of(std::uint64_t mib_per_second, Duration per_request) {
  return {.device = DeviceSettings{
              .bandwidth = {mib_per_second << 20}, .per_request = per_request, .parallelism = 8}};
}

struct Slow {
  int applications;
  int connections;
  int read_percent;
};
std::ostream& operator<<(std::ostream& out, const Slow& slow) {
  return out << slow.applications << (slow.read_percent > 0 ? " readers" : " writers") << ", "
             << slow.connections << " connections";
}

class NodeWithSlowApplications : public ::testing::TestWithParam<Slow> {
 protected:
  NodeWithSlowApplications()
      : storage_(storage_of(1000, 1ms)),
        proxy_({.upstream = storage_.port(),
                .protocol = "beegfs",
                .workers = 2,
                // The burst of readers has room for their files, which are written first.
                .virtual_pfs = fmt::format("\"slow-{{uid}}\": {{rate: 256 KiB/s, burst: {}}}",
                                           GetParam().read_percent > 0 ? "16 MiB" : "16 KiB"),
                .rules = fmt::format("[{{match: {{uid: {}}}, virtual_pfs: default}},"
                                     " {{match: {{}}, virtual_pfs: \"slow-{{uid}}\"}}]",
                                     kQuick)}) {}

  [[nodiscard]] std::string quick() const {
    return fmt::format(
        "  - {{name: quick, uid: {}, node: n1, connections: {}, outstanding: 1, size: 4 KiB,"
        " read_percent: 100, pattern: random, file_size: 256 KiB}}\n",
        kQuick, GetParam().connections);
  }
  [[nodiscard]] std::string slow() const {
    std::string all;
    for (int i = 0; i < GetParam().applications; ++i) {
      all += fmt::format(
          "  - {{name: slow{}, uid: {}, node: n1, connections: {}, outstanding: {}, size: 16 KiB,"
          " read_percent: {}, pattern: sequential, file_size: 16 MiB}}\n",
          i, kSlow + static_cast<std::uint32_t>(i), GetParam().connections, kTasks,
          GetParam().read_percent);
    }
    return all;
  }
  [[nodiscard]] LoadRunSettings load_settings(const std::string& applications,
                                              const std::string& duration) const {
    return {.file_system = fmt::format("beegfs://127.0.0.1:{}/101", proxy_.port()),
            .applications = applications,
            .duration = duration,
            .warm_up = "2 s",
            .verify = false};  // reading everything back at this rate would take long
  }

  // The quick application's requests per second if it runs alone.
  [[nodiscard]] double alone() const {
    LoadRun run(load_settings(quick(), "2 s"));
    run.expect_good_end();
    return run.requests_per_second("quick");
  }

  BeegfsStorage storage_;
  ProxyProcess proxy_;
};

TEST_P(NodeWithSlowApplications, LeaveAnotherOneMostOfWhatItHasAlone) {
  const double before = alone();
  // The end of the run cuts off requests of slow applications.
  LoadRun together(load_settings(slow() + quick(), "6 s"));
  (void)together.finish();
  ASSERT_FALSE(together.results().empty()) << together.text();
  EXPECT_EQ(together.application("quick")["errors"], 0) << together.text();
  // Measured again, since the machine may be busier now.
  const double lonely = std::min(before, alone());
  const double part = together.requests_per_second("quick") / lonely;
  RecordProperty("part_of_what_it_has_alone", std::to_string(part));
  EXPECT_GE(part, 0.6) << lonely << " requests per second alone" << kByClock;
  for (int i = 0; i < GetParam().applications; ++i) {
    EXPECT_GE(together.mib_per_second(fmt::format("slow{}", i)), 0.15)
        << "slow" << i << " may have 0.25" << kByClock;
  }
  const nlohmann::json now = proxy_.status();
  EXPECT_GT(now["counters"]["excess_requests"], 0);
  EXPECT_EQ(now["counters"]["framing_errors"], 0);
  EXPECT_EQ(now["virtual_pfs"][0]["excess_requests"], 0)
      << "the quick application has none sent back";
}

INSTANTIATE_TEST_SUITE_P(Beegfs, NodeWithSlowApplications,
                         ::testing::Values(Slow{1, 12, 100}, Slow{8, 12, 100}, Slow{8, 12, 0},
                                           Slow{8, 64, 100}),
                         [](const auto& each) {
                           return fmt::format("{}{}On{}Connections", each.param.applications,
                                              each.param.read_percent > 0 ? "Readers" : "Writers",
                                              each.param.connections);
                         });

// Two plain jobs of a node wait for the storage, and equally long. What is sent back comes again
// after five seconds, and helps neither of them.
class NodeWithPlainJobs : public ::testing::Test {
 protected:
  struct Calls {
    double p99 = 0;  // in ms
    std::uint64_t sent_back = 0;
  };
  [[nodiscard]] Calls run(const std::string& most) const {
    ProxyProcess proxy({.upstream = storage_.port(),
                        .protocol = "beegfs",
                        .depth = 2,
                        .limits = "max_held_per_client: " + most,
                        .virtual_pfs = "a: {weight: 1}, b: {weight: 1}",
                        .rules = "[{match: {uid: 1001}, virtual_pfs: a},"
                                 " {match: {uid: 1002}, virtual_pfs: b}]"});
    std::string jobs;
    for (const auto& [name, uid] : {std::pair("a", 1001), std::pair("b", 1002)}) {
      jobs += fmt::format(
          "  - {{name: {}, uid: {}, node: n1, connections: 12, outstanding: 8, size: 512 KiB,"
          " read_percent: 0, pattern: sequential, file_size: 8 MiB}}\n",
          name, uid);
    }
    LoadRun load({.file_system = fmt::format("beegfs://127.0.0.1:{}/101", proxy.port()),
                  .applications = jobs,
                  .duration = "6 s",
                  .warm_up = "1 s",
                  .verify = false});
    load.expect_good_end();
    Calls calls{.sent_back = proxy.status()["counters"]["excess_requests"]};
    for (const std::string name : {"a", "b"}) {
      const double p99 = load.application(name)["latency_us"]["p99"];
      calls.p99 = std::max(calls.p99, p99 / 1000);
    }
    return calls;
  }

 private:
  BeegfsStorage storage_{storage_of(20, 0ms)};
};

TEST_F(NodeWithPlainJobs, IsAsFastAsWithoutABound) {
  const Calls off = run("off");
  const Calls automatic = run("auto");
  RecordProperty("p99_ms_off", std::to_string(off.p99));
  RecordProperty("p99_ms_auto", std::to_string(automatic.p99));
  EXPECT_EQ(off.sent_back, 0U);
  EXPECT_LE(automatic.p99, off.p99 * 1.5) << automatic.sent_back << " sent back" << kByClock;
}

}  // namespace
}  // namespace vpfs::test
