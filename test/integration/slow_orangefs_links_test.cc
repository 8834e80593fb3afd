// OrangeFS clients whose only link is slower than client_min_rate: alone they get all of it, and
// beside them another application keeps its share. All settings of the proxy are the defaults.

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/clock/by_clock.h"
#include "test/support/load_run.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"
#include "test/support/slow_link.h"

namespace vpfs::test {
namespace {

// Its twenty processes have more requests under way than the depth. What is read is more than the
// sockets on the way hold.
struct SlowClient {
  const char* name;
  int read_percent;
  const char* size;

  friend std::ostream& operator<<(std::ostream& out, const SlowClient& each) {
    return out << each.name;
  }
};

class SlowOrangefsLinks : public ::testing::TestWithParam<SlowClient> {
 protected:
  static constexpr double kMegabits10 = 1.25e6;  // bytes per second

  SlowOrangefsLinks()
      : proxy_({.upstream = server_port_.number(),
                .virtual_pfs = "slow: {weight: 1}, quick: {weight: 1}",
                .rules = "[{match: {jobid: slow}, virtual_pfs: slow},"
                         " {match: {jobid: quick}, virtual_pfs: quick}]"}),
        link_(proxy_.port()),
        // Each request takes 4 ms of four at a time.
        server_(
            {program("vpfs-server"), "--server", "s0", "--config",
             directory_.write("server.yaml",
                              fmt::format("file_system: {{name: vpfs, id: 1234}}\n"
                                          "servers: [{{alias: s0, addresses: ['tcp://{}', "
                                          "'tcp-px://127.0.0.1:{}', 'tcp-slow://127.0.0.1:{}']}}]\n"
                                          "device: {{bandwidth: 400 MiB/s, per_request: 4 ms, "
                                          "parallelism: 4}}\n",
                                          server_port_.address(), proxy_.port(), link_.port()))}) {}
  void SetUp() override { ASSERT_TRUE(server_.wait_for_line("ready on")) << server_.errors(); }

  // Begins as fast as it can, and has its slow link from then on.
  void start_slow() {
    const SlowClient& client = GetParam();
    slow_.emplace(LoadRunSettings{
        .file_system = fmt::format("tcp-slow://127.0.0.1:{}/vpfs", link_.port()),
        .applications = fmt::format("  - {{name: slow, processes: 20, size: {}, read_percent: {}, "
                                    "file_size: 4 MiB}}\n",
                                    client.size, client.read_percent),
        .verify = false,
        .everybody_served = false});
    ASSERT_TRUE(slow_->wait_until_begun()) << slow_->text();
    link_.set_rate(kMegabits10);
  }
  // The slow client ends with its requests under way, and not one has failed.
  void stop_slow() {
    link_.set_rate(100 * kMegabits10);
    slow_->expect_good_stop();
  }
  // What the link has moved in the direction of the data.
  [[nodiscard]] std::uint64_t moved() const {
    return GetParam().read_percent > 0 ? link_.received() : link_.sent();
  }
  [[nodiscard]] std::uint64_t done_by_quick() {
    return proxy_.status()["virtual_pfs"][2]["done_requests"];
  }
  template <typename Count>
  static double per_second(const Count& count, std::chrono::milliseconds time) {
    const std::uint64_t before = count();
    const auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(time);
    const std::uint64_t after = count();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    return static_cast<double>(after - before) / elapsed.count();
  }

  TemporaryDirectory directory_;
  const ReservedPort server_port_;
  ProxyProcess proxy_;
  SlowLink link_;
  Process server_;
  std::optional<LoadRun> slow_;
};

TEST_P(SlowOrangefsLinks, AClientAloneGetsItsLink) {
  start_slow();
  std::this_thread::sleep_for(3s);
  const std::size_t connections = link_.accepted();
  const double rate = per_second([this] { return moved(); }, 5s);
  EXPECT_GE(rate, 0.9 * kMegabits10) << kByClock;
  EXPECT_LE(rate, 1.1 * kMegabits10) << "the link is not slow" << kByClock;
  EXPECT_EQ(link_.accepted(), connections) << "it repeats what it has moved";
  std::printf("%.3f of its link\n", rate / kMegabits10);
  stop_slow();
}

TEST_P(SlowOrangefsLinks, BesideItAQuickApplicationKeepsItsShare) {
  const auto rate_of_quick = [this](std::chrono::milliseconds time) {
    return per_second([this] { return done_by_quick(); }, time);
  };
  LoadRun quick({.file_system = fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxy_.port()),
                 .applications = "  - {name: quick, processes: 2, outstanding: 16, size: 4 KiB, "
                                 "pattern: random, read_percent: 50, file_size: 1 MiB}\n",
                 .verify = false});
  ASSERT_TRUE(quick.wait_until_begun()) << quick.text();
  const double alone = rate_of_quick(2s);
  start_slow();
  std::this_thread::sleep_for(2s);
  const std::size_t connections = link_.accepted();
  const std::uint64_t before = moved();
  const double beside = rate_of_quick(5s);
  const double link = static_cast<double>(moved() - before) / 5 / kMegabits10;
  EXPECT_GE(beside, 0.9 * alone / 2) << "its share is a half" << kByClock;
  EXPECT_GE(link, 0.75) << "the slow client needs less than its share" << kByClock;
  EXPECT_EQ(link_.accepted(), connections) << "it repeats what it has moved";
  std::printf("quick: alone %.0f/s, beside %.0f/s; slow: %.3f of its link\n", alone, beside, link);
  stop_slow();
  quick.expect_good_stop();
}

INSTANTIATE_TEST_SUITE_P(Clients, SlowOrangefsLinks,
                         ::testing::Values(SlowClient{"Writers", 0, "128 KiB"},
                                           SlowClient{"Readers", 100, "4 MiB"}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace vpfs::test
