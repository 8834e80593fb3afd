// Several coordinators with one store: one leads, and another takes over whatever becomes of it,
// while clients read and write verified data.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/control/standby_site.h"
#include "test/support/comes_true.h"
#include "test/support/etcd_cluster.h"

namespace vpfs::test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kTimes =
    "period: 20 ms\ndeadline: 10 ms\nlease: 400 ms\ntransit: 100 ms\nlog_level: debug\n";

enum class Store : std::uint8_t { directory, etcd };

class Standbys : public ::testing::TestWithParam<Store> {
 protected:
  void SetUp() override {
    if (GetParam() == Store::directory) {
      std::filesystem::create_directory(shared());
      return;
    }
    if (const std::string why = EtcdCluster::missing(); !why.empty()) GTEST_SKIP() << why;
    etcd_.emplace(EtcdCluster::Options{});
  }

  [[nodiscard]] std::filesystem::path shared() const { return site_.folder() / "shared"; }
  // The mapping `store`.
  [[nodiscard]] std::string store() const {
    if (!etcd_) return fmt::format("directory: {}, lease: 2 s", shared().string());
    const control::EtcdSettings etcd = etcd_->settings();
    const std::filesystem::path password = site_.folder() / "password";
    std::ofstream(password) << etcd.password << "\n";
    return fmt::format(
        "lease: 2 s, etcd: {{endpoints: [{}], ca: {}, certificate: {}, key: {}, user: {},"
        " password_file: {}}}",
        fmt::join(etcd.endpoints, ", "), etcd.files.ca, etcd.files.certificate, etcd.files.key,
        etcd.user, password.string());
  }
  // No coordinator reaches the store any more.
  void take_store_away() {
    if (etcd_) {
      etcd_->signal(0, SIGSTOP);
      etcd_->signal(1, SIGSTOP);
    } else {
      std::filesystem::rename(shared(), away());
    }
  }
  void give_store_back() {
    if (etcd_) {
      etcd_->signal(0, SIGCONT);
      etcd_->signal(1, SIGCONT);
    } else {
      std::filesystem::rename(away(), shared());
    }
  }
  // How long no stage was led by that term or a later one.
  [[nodiscard]] milliseconds until_led(std::uint64_t term, StandbySite::Clock::time_point from) {
    EXPECT_TRUE(site_.all_are_led(term));
    return std::chrono::duration_cast<milliseconds>(StandbySite::Clock::now() - from);
  }

  std::optional<EtcdCluster> etcd_;
  CoordinatorSite site_{2, 50};

 private:
  [[nodiscard]] std::filesystem::path away() const { return site_.folder() / "away"; }
};

TEST_P(Standbys, OneLeadsAndTheOthersNameIt) {
  StandbySite coordinators(site_, 2, store(), kTimes);
  coordinators.member(0).start();
  ASSERT_EQ(coordinators.leader(1), 0U);
  coordinators.member(1).start();
  ASSERT_TRUE(coordinators.member(1).logs(coordinators.socket(0) + " leads, with term 1"));
  ASSERT_TRUE(site_.all_are_led(1));
  const Outcome status = coordinators.ctl({"status"}, coordinators.socket(1));
  EXPECT_EQ(status.code, 0) << status.text();
  EXPECT_THAT(status.text(), HasSubstr(coordinators.socket(0) + " leads, with term 1"));
  const Outcome stat = coordinators.ctl({"stat"}, coordinators.socket(1));
  EXPECT_NE(stat.code, 0);
  EXPECT_THAT(stat.text(), HasSubstr(coordinators.socket(0) + " leads, with term 1"));
  const Outcome refused = coordinators.ctl({"rule", "list"}, coordinators.socket(1));
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.text(), AllOf(HasSubstr("standby"), HasSubstr(coordinators.socket(0))));
  EXPECT_EQ(coordinators.leads_with(1), 0U);
  coordinators.stop_all();
}

TEST_P(Standbys, AnotherTakesOverWithinTwoSecondsOfAKill) {
  StandbySite coordinators(site_, 3, store(), kTimes);
  coordinators.start_all();
  LoadRun load(site_.load(kBothJobs));
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  std::uint64_t term = 1;
  for (int round = 0; round < 5; ++round) {
    const auto leader = coordinators.leader(term);
    ASSERT_TRUE(leader);
    term = coordinators.leads_with(*leader);
    ASSERT_TRUE(site_.all_are_led(term));
    ASSERT_TRUE(coordinators.others_watch(*leader, term));
    const auto killed = StandbySite::Clock::now();
    coordinators.member(*leader).kill();
    const auto next = coordinators.leader(term + 1);
    ASSERT_TRUE(next);
    const milliseconds took = until_led(coordinators.leads_with(*next), killed);
    RecordProperty("took_ms", std::to_string(took.count()));
    if (!programs_have_sanitizer()) EXPECT_LT(took, 2s);
    coordinators.member(*leader).start();
    ++term;
  }
  load.expect_good_stop();
  coordinators.stop_all();
}

TEST_P(Standbys, OneThatIsStoppedIsReplacedWithinTheLeaseAndThenFollows) {
  StandbySite coordinators(site_, 2, store(), kTimes);
  coordinators.start_all();
  const auto first = coordinators.leader(1);
  ASSERT_TRUE(first);
  const std::uint64_t term = coordinators.leads_with(*first);
  ASSERT_TRUE(site_.all_are_led(term));
  LoadRun load(site_.load(kBothJobs));
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  coordinators.member(*first).signal(SIGSTOP);
  const std::size_t other = 1 - *first;
  ASSERT_TRUE(coordinators.member(other).logs("ready, policy total, term"));
  const std::uint64_t next = coordinators.leads_with(other);
  EXPECT_GT(next, term);
  ASSERT_TRUE(site_.all_are_led(next));
  coordinators.member(*first).signal(SIGCONT);
  EXPECT_TRUE(coordinators.member(*first).logs(fmt::format("term {} is over: ", term)));
  EXPECT_TRUE(coordinators.member(*first).logs(
      fmt::format("{} leads, with term {}", coordinators.socket(other), next)));
  std::this_thread::sleep_for(500ms);
  EXPECT_TRUE(site_.all_are_led(next));
  load.expect_good_stop();
  coordinators.stop_all();
}

TEST_P(Standbys, OneThatEndsHandsTheOfficeOver) {
  StandbySite coordinators(site_, 2, store(), kTimes);
  coordinators.start_all();
  const auto first = coordinators.leader(1);
  ASSERT_TRUE(first);
  const std::uint64_t term = coordinators.leads_with(*first);
  ASSERT_TRUE(site_.all_are_led(term));
  coordinators.member(*first).stop();
  const auto next = coordinators.leader(term + 1);
  ASSERT_TRUE(next);
  EXPECT_NE(*next, *first);
  ASSERT_TRUE(site_.all_are_led(coordinators.leads_with(*next)));
  coordinators.stop_all();
}

TEST_P(Standbys, AChangeThatWasAnsweredIsThereAfterEachKill) {
  StandbySite coordinators(site_, 2, store(), kTimes);
  coordinators.start_all();
  constexpr int kRounds = 10;
  std::uint64_t term = 1;
  for (int round = 0; round < kRounds; ++round) {
    const auto leader = coordinators.leader(term);
    ASSERT_TRUE(leader);
    term = coordinators.leads_with(*leader);
    ASSERT_TRUE(coordinators.others_watch(*leader, term));
    const std::string name = fmt::format("r{}", round);
    const Outcome made = coordinators.ctl({"rule", "start", name, "jobid=" + name, "weight=2"},
                                          coordinators.socket(*leader));
    coordinators.member(*leader).kill();
    ASSERT_EQ(made.code, 0) << made.text();
    coordinators.member(*leader).start();
    ++term;
  }
  const auto leader = coordinators.leader(term);
  ASSERT_TRUE(leader);
  const Outcome list = coordinators.ctl({"rule", "list"}, coordinators.socket(*leader));
  ASSERT_EQ(list.code, 0) << list.text();
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_THAT(list.output, HasSubstr(fmt::format("r{} ", round)));
  }
  coordinators.stop_all();
}

TEST_P(Standbys, AStoreThatIsAwayEndsTheOfficeAndNoIo) {
  StandbySite coordinators(site_, 2, store(), kTimes);
  coordinators.start_all();
  const auto first = coordinators.leader(1);
  ASSERT_TRUE(first);
  const std::uint64_t term = coordinators.leads_with(*first);
  ASSERT_TRUE(site_.all_are_led(term));
  LoadRun load(site_.load(kBothJobs));
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  take_store_away();
  EXPECT_TRUE(coordinators.member(*first).logs(fmt::format("term {} is over: ", term)));
  EXPECT_TRUE(site_.all_are_alone());
  const std::uint64_t done = site_.done("a");
  EXPECT_TRUE(comes_true([&] { return site_.done("a") > done; }));
  give_store_back();
  const auto next = coordinators.leader(term + 1);
  ASSERT_TRUE(next);
  ASSERT_TRUE(site_.all_are_led(coordinators.leads_with(*next)));
  load.expect_good_stop();
  coordinators.stop_all();
}

INSTANTIATE_TEST_SUITE_P(Stores, Standbys, ::testing::Values(Store::directory, Store::etcd),
                         [](const auto& store) {
                           return store.param == Store::etcd ? "Etcd" : "Directory";
                         });

}  // namespace
}  // namespace vpfs::test
