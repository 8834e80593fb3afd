// What two applications get, whose files are striped over the targets of one BeeGFS storage server,
// through a real vpfs-proxy with a scheduler for each target: weights divide the total. If each
// target shared by itself, the ratio here would be 2.3 to 2.8.

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/clock/by_clock.h"
#include "test/support/load_run.h"
#include "test/support/proxy_process.h"
#include "test/support/servers/beegfs_storage.h"

namespace vpfs::test {
namespace {

constexpr double kRatio = 3;
constexpr double kTolerance = 0.02;

class StripedApplications : public ::testing::TestWithParam<std::size_t> {
 protected:
  static std::vector<std::uint16_t> targets() {
    std::vector<std::uint16_t> numbers;
    for (std::size_t i = 0; i < GetParam(); ++i) {
      numbers.push_back(static_cast<std::uint16_t>(101 + i));
    }
    return numbers;
  }
  // All targets together do 512 requests of 64 KiB in a second.
  static StorageSettings storage() {
    return {.targets = targets(),
            .device =
                DeviceSettings{
                    .bandwidth = {(32 << 20) / GetParam()}, .per_request = {}, .parallelism = 2},
            .record = false};
  }
  // Enough in flight for the heavier application's part of all slots. Its requests are at targets
  // by chance, so it is absent from each one now and then.
  static std::string application(const std::string& name, std::uint32_t uid) {
    return fmt::format(
        "  - {{name: {}, uid: {}, processes: {}, size: 64 KiB, pattern: random,"
        " read_percent: 100, file_size: 2 MiB}}\n",
        name, uid, 5 * GetParam());
  }
  // What the heavier application gets for each byte of the other one.
  [[nodiscard]] double measured() const {
    LoadRun load({.file_system = fmt::format("beegfs://127.0.0.1:{}/{}", proxy_.port(),
                                             fmt::join(targets(), ",")),
                  .applications = application("heavy", 1001) + application("light", 1002),
                  .duration = "5 s",
                  .warm_up = "1 s",
                  .verify = false});
    load.expect_good_end();
    return load.mib_per_second("heavy") / load.mib_per_second("light");
  }

  BeegfsStorage storage_{storage()};
  ProxyProcess proxy_{{.upstream = storage_.port(),
                       .protocol = "beegfs",
                       .workers = 2,
                       .depth = 4,
                       .scheduler = "per_target: true",
                       .virtual_pfs = "heavy: {weight: 3}, light: {weight: 1}",
                       .rules = "[{match: {uid: 1001}, virtual_pfs: heavy},"
                                " {match: {uid: 1002}, virtual_pfs: light}]"}};
};

TEST_P(StripedApplications, HaveTotalsOfAllTargetsByTheirWeights) {
  double best = 0;
  // Again if the machine is busy: a process that is late is absent from the targets.
  for (int i = 0; i < 3 && std::abs(best - kRatio) > kTolerance * kRatio; ++i) {
    const double ratio = measured();
    fmt::print("{} targets: {:.3f}\n", GetParam(), ratio);
    if (std::abs(ratio - kRatio) < std::abs(best - kRatio)) best = ratio;
  }
  EXPECT_NEAR(best, kRatio, kTolerance * kRatio) << kByClock;
  EXPECT_EQ(proxy_.status()["targets"].size(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Beegfs, StripedApplications, ::testing::Values(2U, 4U),
                         [](const auto& each) { return fmt::format("{}Targets", each.param); });

}  // namespace
}  // namespace vpfs::test
