// Two users share a BeeGFS storage server two to one through a real vpfs-proxy, with verified data.

#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/clock/by_clock.h"
#include "test/support/load_run.h"
#include "test/support/proxy_process.h"
#include "test/support/servers/beegfs_storage.h"

namespace vpfs::test {
namespace {

struct Case {
  const char* name;
  const char* io;
  std::uint64_t mib_per_second;  // of the device, which any machine can keep busy
};
std::ostream& operator<<(std::ostream& out, const Case& each) {
  return out << each.io;
}

class SharesByUser : public ::testing::TestWithParam<Case> {
 protected:
  // The bytes of the first user over those of the second, while both had requests waiting: shares
  // hold only then. Nothing if there was no such time.
  [[nodiscard]] std::optional<double> ratio_while_both_wait() {
    constexpr std::uint64_t kBacklog = 2;
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    std::chrono::steady_clock::time_point begun = {};
    nlohmann::json before;
    while (std::chrono::steady_clock::now() < deadline) {
      const nlohmann::json now = proxy_.status()["virtual_pfs"];
      const auto got = [&](std::size_t i) {
        return now[i]["done_bytes"].get<double>() - before[i]["done_bytes"].get<double>();
      };
      if (now[1]["queued_requests"] < kBacklog || now[2]["queued_requests"] < kBacklog) {
        before = nullptr;
      } else if (before.is_null()) {
        before = now;
        begun = std::chrono::steady_clock::now();
      } else if (std::chrono::steady_clock::now() - begun >= 1500ms) {
        return got(1) / got(2);
      }
      std::this_thread::sleep_for(5ms);
    }
    return std::nullopt;
  }
  [[nodiscard]] static std::string user(const std::string& name, std::uint32_t uid) {
    return fmt::format("  - {{name: {}, uid: {}, processes: 2, outstanding: 8, {}}}\n", name, uid,
                       GetParam().io);
  }

  BeegfsStorage storage_{
      {.device = DeviceSettings{
           .bandwidth = {GetParam().mib_per_second << 20}, .per_request = {}, .parallelism = 4}}};
  ProxyProcess proxy_{
      {.upstream = storage_.port(),
       .protocol = "beegfs",
       .workers = 2,
       .depth = 4,
       .virtual_pfs = "a: {weight: 2}, b: {weight: 1}",
       .rules = "[{match: {uid: 1001}, virtual_pfs: a}, {match: {uid: 1002}, virtual_pfs: b}]"}};
};

TEST_P(SharesByUser, HoldWhileTheDataStayWhole) {
  LoadRun load({.file_system = fmt::format("beegfs://127.0.0.1:{}/101", proxy_.port()),
                .applications = user("a", 1001) + user("b", 1002)});
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  const std::optional<double> ratio = ratio_while_both_wait();
  load.expect_good_stop();
  EXPECT_EQ(storage_.record().headers_in_pieces, 0U);
  EXPECT_EQ(proxy_.status()["counters"]["framing_errors"], 0);
  if (!ratio) GTEST_SKIP() << "this machine cannot keep such a slow device busy";
  EXPECT_NEAR(*ratio, 2.0, 0.25) << kByClock;
}

INSTANTIATE_TEST_SUITE_P(
    Beegfs, SharesByUser,
    ::testing::Values(Case{"Writes", "size: 64 KiB, read_percent: 0, file_size: 1 MiB", 10},
                      Case{"Reads", "size: 64 KiB, read_percent: 100, file_size: 1 MiB", 10},
                      Case{"Both", "size: 128 KiB, read_percent: 50, file_size: 2 MiB", 12},
                      Case{"SmallOnes", "size: 4 KiB, read_percent: 50, file_size: 256 KiB", 1}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace vpfs::test
