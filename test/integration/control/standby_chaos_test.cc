// Three coordinators, an etcd of three members and proxies under verified I/O, to which all kinds
// of things happen. No byte is wrong, limits never add up to more than the capacity, changes that
// were answered are there at the end, in their order, and all is led again soon. By the wall clock.
//
// VPFS_CHAOS_SECONDS sets for how long, VPFS_CHAOS_SEED what happens.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "test/integration/control/standby_site.h"
#include "test/support/comes_true.h"
#include "test/support/etcd_cluster.h"

namespace vpfs::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMembers = 3;
constexpr std::size_t kServers = 3;
constexpr std::uint64_t kCapacity = std::uint64_t{12} << 20;
constexpr const char* kPolicy =
    "policy: psfa\ncapacity: {bytes: 12 MiB/s}\nfloor: {bytes: 64 KiB/s}\n"
    "period: 50 ms\nlease: 500 ms\ntransit: 200 ms\n";
// After the last fault: an office whose leader was killed before any standby knew it ends with its
// lease, then comes a cycle.
constexpr auto kLedAgain = 8s;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

// With and without `members`.
class StandbyChaos : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = EtcdCluster::missing(); !why.empty()) GTEST_SKIP() << why;
    etcd_.emplace(EtcdCluster::Options{});
    const control::EtcdSettings etcd = etcd_->settings();
    const std::string password = site_.folder() / "password";
    std::ofstream(password) << etcd.password << "\n";
    coordinators_.emplace(
        site_, kMembers,
        fmt::format("lease: 2 s, etcd: {{endpoints: [{}], ca: {}, certificate: {}, key: {},"
                    " user: {}, password_file: {}}}",
                    fmt::join(etcd.endpoints, ", "), etcd.files.ca, etcd.files.certificate,
                    etcd.files.key, etcd.user, password),
        std::string(kPolicy) + GetParam());
    coordinators_->start_all();
  }

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  void some_time(std::uint64_t most_ms) {
    std::this_thread::sleep_for(milliseconds(below(most_ms)));
  }

  void fault() {
    const std::size_t which = below(kMembers);
    CoordinatorProcess& coordinator = coordinators_->member(which);
    switch (below(8)) {
      case 0:
      case 1:
        ++faults_["coordinator killed"];
        coordinator.kill();
        some_time(1500);
        coordinator.start();
        break;
      case 2:
        ++faults_["coordinator stopped"];
        coordinator.signal(SIGSTOP);
        some_time(4000);
        coordinator.signal(SIGCONT);
        break;
      case 3:
        ++faults_["coordinator ended"];
        coordinator.stop();
        some_time(500);
        coordinator.start();
        break;
      case 4:
        ++faults_["etcd member killed"];
        etcd_->kill(which);
        some_time(1500);
        etcd_->start(which);
        break;
      case 5:
        ++faults_["etcd member stopped"];
        etcd_->signal(which, SIGSTOP);
        some_time(3000);
        etcd_->signal(which, SIGCONT);
        break;
      case 6:
        ++faults_["two etcd members stopped"];
        etcd_->signal(which, SIGSTOP);
        etcd_->signal((which + 1) % kMembers, SIGSTOP);
        some_time(3000);
        etcd_->signal(which, SIGCONT);
        etcd_->signal((which + 1) % kMembers, SIGCONT);
        break;
      default:
        ++faults_["proxy stopped"];
        site_.proxy(below(kServers)).process().signal(SIGSTOP);
        some_time(700);
        for (std::size_t i = 0; i < kServers; ++i) site_.proxy(i).process().signal(SIGCONT);
    }
  }

  // Asks for a rule. Those that were answered have to be there in the end.
  void change() {
    const std::string name = fmt::format("r{}", asked_++);
    const Outcome outcome =
        coordinators_->ctl({"rule", "start", name, "jobid=" + name, "weight=2"});
    if (outcome.ok()) answered_.push_back(name);
  }

  // While all coordinators are stopped, caps only end. So one proxy after the other can be asked.
  void look_at_caps() {
    for (std::size_t i = 0; i < kMembers; ++i) coordinators_->member(i).signal(SIGSTOP);
    std::this_thread::sleep_for(20ms);  // for messages under way
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kServers; ++i) {
      const nlohmann::json status = site_.proxy(i).status();
      for (const auto& each : status["virtual_pfs"]) {
        sum += each.value("allocated_rate", std::uint64_t{0});
      }
    }
    for (std::size_t i = 0; i < kMembers; ++i) coordinators_->member(i).signal(SIGCONT);
    most_caps_ = std::max(most_caps_, sum);
    caps_seen_ += sum > 0 ? 1 : 0;
  }

  [[nodiscard]] bool all_have_leases() {
    for (std::size_t i = 0; i < kServers; ++i) {
      const nlohmann::json row = site_.coordinated(i);
      if (row.is_null() || !row.contains("lease_us_left")) return false;
    }
    return true;
  }

  CoordinatorSite site_{kServers, 8};
  std::optional<EtcdCluster> etcd_;
  std::optional<StandbySite> coordinators_;
  std::mt19937_64 random_{number_from("VPFS_CHAOS_SEED", 20261128)};
  std::map<std::string, int> faults_;
  int asked_ = 0;
  std::vector<std::string> answered_;
  std::uint64_t most_caps_ = 0;
  int caps_seen_ = 0;
};

TEST_P(StandbyChaos, NothingIsLostAndTheSumHolds) {
  LoadRun load(site_.load(kBothJobs));
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  const auto end = Clock::now() + std::chrono::seconds(number_from("VPFS_CHAOS_SECONDS", 20));
  while (Clock::now() < end) {
    fault();
    change();
    look_at_caps();
    some_time(1000);
  }
  const auto last = Clock::now();
  EXPECT_TRUE(comes_true([&] { return all_have_leases(); }, kLedAgain));
  const auto led = std::chrono::duration_cast<milliseconds>(Clock::now() - last);
  for (const auto& [what, times] : faults_) std::cout << times << " times: " << what << "\n";
  std::cout << answered_.size() << " of " << asked_ << " changes answered; caps of at most "
            << most_caps_ << " of " << kCapacity << ", seen " << caps_seen_ << " times; led after "
            << led.count() << " ms\n";
  EXPECT_LE(most_caps_, kCapacity);
  EXPECT_GT(caps_seen_, 0);
  EXPECT_GT(answered_.size(), 0U);
  Outcome list;
  EXPECT_TRUE(comes_true([&] {
    list = coordinators_->ctl({"rule", "list"});
    return list.ok();
  }));
  // The newest first.
  std::size_t place = std::string::npos;
  for (const std::string& name : answered_) {
    const std::size_t found = list.output.find("\n" + name + " ");
    EXPECT_NE(found, std::string::npos) << name << " was answered\n" << list.output;
    EXPECT_LT(found, place) << name << " is before those that came earlier\n" << list.output;
    place = found;
  }
  load.expect_good_stop();
  coordinators_->stop_all();
}

INSTANTIATE_TEST_SUITE_P(Of, StandbyChaos, ::testing::Values("", "members: auto\n"),
                         [](const auto& info) {
                           return *info.param == '\0' ? "standbys" : "members";
                         });

}  // namespace
}  // namespace vpfs::test
