// A coordinator and its proxies are killed and stopped at random under verified I/O. No byte is
// wrong, nothing hangs, and the shares are back soon after. By the wall clock.
//
// VPFS_CHAOS_SECONDS sets for how long (60 for a whole minute), VPFS_CHAOS_SEED what happens.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/integration/control/coordinator_site.h"
#include "test/support/clock/by_clock.h"
#include "test/support/clock/stall_watch.h"

namespace vpfs::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kProxies = 4;
constexpr unsigned kDevice = 8;  // MiB/s of each server
constexpr const char* kTimes = "period: 50 ms\nlease: 1 s\ntransit: 500 ms\n";
// Both have requests waiting at each server at all times.
constexpr const char* kApplications =
    "  - {name: a, size: 128 KiB, outstanding: 12, read_percent: 50, pattern: random,"
    " file_size: 16 MiB, datafiles: 2}\n"
    "  - {name: b, size: 256 KiB, outstanding: 12, read_percent: 50, pattern: random,"
    " file_size: 16 MiB}\n";

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

class CoordinatorChaos : public ::testing::Test {
 protected:
  void run(const std::string& more, std::chrono::seconds usual) {
    const std::uint64_t seed = from_environment("VPFS_CHAOS_SEED", 20261122);
    const std::chrono::seconds length(
        from_environment("VPFS_CHAOS_SECONDS", static_cast<std::uint64_t>(usual.count())));
    std::cout << "seed " << seed << ", " << length.count() << " s\n";
    random_.seed(seed);
    coordinator_.emplace(site_.coordinator("site", kTimes + more));
    coordinator_->start();
    load_.emplace(site_.load(kApplications));
    ASSERT_TRUE(load_->wait_until_begun()) << load_->text();
    const auto end = Clock::now() + length;
    while (Clock::now() < end) {
      fault();
      std::this_thread::sleep_for(milliseconds(below(400)));
    }
    std::cout << faults_ << " faults: " << kills_ << " kills of a proxy, " << stops_
              << " stops of one, " << coordinator_kills_ << " kills of the coordinator, "
              << coordinator_stops_ << " stops of it\n";
    EXPECT_GT(faults_, static_cast<std::uint64_t>(length.count()) / 3);
  }
  // The ratio of the rates of b to a, from two seconds after the last fault on, in the first two
  // seconds in which both together got that many MiB/s. Nothing: this machine is too slow for it.
  std::optional<double> settled_ratio(double least_total) {
    std::this_thread::sleep_for(2s);
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t a = site_.done("a");
      const std::uint64_t b = site_.done("b");
      const auto begin = Clock::now();
      std::this_thread::sleep_for(2s);
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      const double more_a = static_cast<double>(site_.done("a") - a);
      const double more_b = static_cast<double>(site_.done("b") - b);
      total_ = (more_a + more_b) / seconds / (1 << 20);
      std::cout << fmt::format("ratio {:.3f}, {:.1f} MiB/s\n", more_b / more_a, total_);
      if (total_ >= least_total) return more_b / more_a;
    }
    return std::nullopt;
  }
  void expect_good_end() {
    load_->expect_good_stop();
    for (std::size_t i = 0; i < kProxies; ++i) EXPECT_TRUE(site_.proxy(i).wait_until_idle());
    coordinator_->stop();
  }

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  milliseconds some_time() { return milliseconds(20 + below(1400)); }

  void fault() {
    ++faults_;
    const std::size_t which = below(kProxies);
    Process& proxy = site_.proxy(which).process();
    switch (below(5)) {
      case 0:
        ++kills_;
        site_.proxy(which).kill();
        std::this_thread::sleep_for(milliseconds(below(300)));
        site_.proxy(which).start();
        break;
      case 1:
        ++stops_;
        proxy.signal(SIGSTOP);
        std::this_thread::sleep_for(some_time());
        proxy.signal(SIGCONT);
        break;
      case 2:
        ++coordinator_kills_;
        coordinator_->kill();
        std::this_thread::sleep_for(milliseconds(below(1700)));
        look_at_caps();
        coordinator_->start();
        break;
      case 3:
        ++coordinator_stops_;
        coordinator_->signal(SIGSTOP);
        std::this_thread::sleep_for(some_time());
        look_at_caps();
        coordinator_->signal(SIGCONT);
        break;
      default:  // both at once
        ++coordinator_kills_;
        ++stops_;
        proxy.signal(SIGSTOP);
        coordinator_->kill();
        std::this_thread::sleep_for(some_time());
        proxy.signal(SIGCONT);
        std::this_thread::sleep_for(milliseconds(below(100)));
        look_at_caps();
        coordinator_->start();
    }
  }
  // While the coordinator is stopped, caps only end. So one proxy after the other can be asked.
  void look_at_caps() {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kProxies; ++i) {
      const nlohmann::json status = site_.proxy(i).status();
      for (const auto& each : status["virtual_pfs"]) {
        sum += each.value("allocated_rate", std::uint64_t{0});
      }
    }
    most_caps_ = std::max(most_caps_, sum);
    caps_seen_ += sum > 0 ? 1 : 0;
  }

  CoordinatorSite site_{kProxies, kDevice};
  std::optional<CoordinatorProcess> coordinator_;
  std::optional<LoadRun> load_;
  StallWatch stalls_;
  std::mt19937_64 random_;
  std::uint64_t faults_ = 0;
  std::uint64_t kills_ = 0;
  std::uint64_t stops_ = 0;
  std::uint64_t coordinator_kills_ = 0;
  std::uint64_t coordinator_stops_ = 0;
  std::uint64_t most_caps_ = 0;
  int caps_seen_ = 0;
  double total_ = 0;
};

TEST_F(CoordinatorChaos, TotalService) {
  run("policy: total\n", 20s);
  // a has two of the four servers. Each I/O of b takes all four, so that b gets on each what it
  // gets on those of a: the optimum is as much for both, where local shares would give 2 to 1.
  const double optimum = kProxies * kDevice * 2.0 / 3;
  const std::optional<double> ratio = settled_ratio(0.93 * optimum);
  expect_good_end();
  if (!ratio) GTEST_SKIP() << "this machine is slower than the devices";
  EXPECT_NEAR(*ratio, 1.0, 0.1) << kByClock;
}

TEST_F(CoordinatorChaos, CapsThatAddUp) {
  constexpr std::uint64_t kCapacity = std::uint64_t{14} << 20;
  run("policy: psfa\ncapacity: {bytes: 14 MiB/s}\nfloor: {bytes: 64 KiB/s}\n", 10s);
  EXPECT_LE(most_caps_, kCapacity);
  EXPECT_GT(caps_seen_, 0) << "no caps were seen";
  std::cout << "caps of at most " << most_caps_ << " of " << kCapacity << ", seen " << caps_seen_
            << " times\n";
  constexpr double kTotal = static_cast<double>(kCapacity) / (1 << 20);
  const std::optional<double> ratio = settled_ratio(0.93 * kTotal);
  expect_good_end();
  EXPECT_LE(total_, 1.1 * kTotal);
  if (!ratio) GTEST_SKIP() << "this machine is too slow";
  EXPECT_NEAR(*ratio, 1.0, 0.1) << kByClock;
}

}  // namespace
}  // namespace vpfs::test
