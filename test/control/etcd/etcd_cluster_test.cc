#include "test/support/etcd_cluster.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/etcd/etcd_site_store.h"
#include "net/socket_options.h"
#include "test/control/etcd/store_fixture.h"
#include "test/control/store/site_store_rig.h"

// Stores of an etcd of three members, some of which fail.
namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using test::EtcdCluster;
using ::testing::HasSubstr;

class EtcdClusterTest : public ::testing::Test {
 protected:
  EtcdClusterTest() {
    net::ignore_broken_pipes();
    skip_without_etcd();
  }
  void start(std::size_t members, const std::vector<std::string>& more = {}) {
    cluster_ =
        std::make_unique<EtcdCluster>(EtcdCluster::Options{.members = members, .more = more});
  }
  std::unique_ptr<EtcdSiteStore> open(Duration lease = 60s) {
    EtcdSettings settings = cluster_->settings();
    settings.connect_time_out = 500ms;
    settings.call_time_out = 1s;
    return open_store(settings, prefix_, lease);
  }
  // A leader that has loaded.
  std::unique_ptr<EtcdSiteStore> leader(std::uint64_t incarnation, Duration lease = 60s) {
    auto store = open(lease);
    EXPECT_EQ(claim(*store, incarnation), "done");
    (void)load(*store);
    return store;
  }
  // Until it succeeds, as a coordinator does it.
  static std::string append(SiteStore& store, const std::string& record) {
    for (int time = 0;; ++time) {
      const auto done = store.append(record);
      if (done || done.error().why != SiteStore::Why::unreachable || time == 30) {
        return answer(done);
      }
      std::this_thread::sleep_for(200ms);
    }
  }

  const std::string prefix_ = default_etcd_prefix("site");
  std::unique_ptr<EtcdCluster> cluster_;
};

TEST_F(EtcdClusterTest, EverythingGoesOnWithoutOneMember) {
  start(3);
  Records all;
  for (const std::size_t killed : {0U, 1U}) {
    const auto store = leader(killed + 1);
    all.push_back("before " + std::to_string(killed));
    ASSERT_EQ(append(*store, all.back()), "done");
    cluster_->kill(killed);
    for (int record = 0; record < 20; ++record) {
      all.push_back(std::to_string(killed) + "." + std::to_string(record));
      ASSERT_EQ(append(*store, all.back()), "done");
    }
    ASSERT_EQ(answer(store->confirm()), "done");
    const auto next = leader(killed + 11);
    ASSERT_EQ(load(*next), all);
    ASSERT_EQ(answer(next->resign()), "done");
    ASSERT_TRUE(next->look());
    EXPECT_TRUE(next->look()->is_vacant);
    cluster_->start(killed);
    cluster_->await(killed);
  }
}

TEST_F(EtcdClusterTest, WithoutAMajorityItIsUnreachableAndARetryIsDoneOnce) {
  start(3);
  const auto store = leader(1);
  ASSERT_EQ(append(*store, "one"), "done");
  cluster_->kill(0);
  cluster_->kill(1);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_THAT(answer(store->append("two")), HasSubstr("unreachable"));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
  EXPECT_THAT(answer(store->confirm()), HasSubstr("unreachable"));
  const auto other = open();
  const auto seen = other->look();
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().why, SiteStore::Why::unreachable);
  for (const std::string& endpoint : cluster_->settings().endpoints) {
    EXPECT_THAT(seen.error().text, HasSubstr(endpoint));
  }
  cluster_->start(0);
  cluster_->start(1);
  cluster_->await(2);
  ASSERT_EQ(append(*store, "two"), "done");
  ASSERT_EQ(append(*store, "three"), "done");
  EXPECT_EQ(load(*store), (Records{"one", "two", "three"}));
}

TEST_F(EtcdClusterTest, AMemberThatHangsMakesWayForAnother) {
  start(3);
  const auto store = leader(1);
  ASSERT_EQ(append(*store, "one"), "done");
  // A store asks the first endpoint first.
  cluster_->signal(0, SIGSTOP);
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_EQ(append(*store, "two"), "done");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 8s) << "with an election, if it led";
  const std::uint64_t before = store->requests();
  for (int record = 0; record < 10; ++record) {
    ASSERT_EQ(append(*store, "r" + std::to_string(record)), "done");
  }
  ASSERT_EQ(answer(store->confirm()), "done");
  EXPECT_LE(store->requests() - before, 14U) << "the member that hangs is asked no more";
  // What it was sent before it hung comes late.
  cluster_->signal(0, SIGCONT);
  cluster_->await(0);
  Records all = {"one", "two"};
  for (int record = 0; record < 10; ++record) all.push_back("r" + std::to_string(record));
  EXPECT_EQ(load(*store), all);
  cluster_->signal(0, SIGSTOP);
  const auto fresh = open();
  EXPECT_EQ(claim(*fresh, 2), "done");
  EXPECT_EQ(load(*fresh), all);
  EXPECT_EQ(answer(store->confirm()), "lost");
  cluster_->signal(0, SIGCONT);
}

TEST_F(EtcdClusterTest, ALeaderKeepsItsOfficeWhileTheMemberThatItAsksHangs) {
  start(3);
  const Duration lease = 5s;
  const auto store = open_store(cluster_->settings(), prefix_, lease);  // with the usual time-outs
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(answer(store->confirm()), "done");
  auto confirmed = std::chrono::steady_clock::now();
  cluster_->signal(0, SIGSTOP);
  for (int time = 0; time < 3; ++time) {
    std::this_thread::sleep_until(confirmed + lease / 3);
    for (;;) {
      const auto begun = std::chrono::steady_clock::now();
      const std::string said = answer(store->confirm());
      ASSERT_LT(std::chrono::steady_clock::now() - confirmed, lease) << said;
      if (said != "done") continue;
      confirmed = begun;
      break;
    }
  }
  cluster_->signal(0, SIGCONT);
}

TEST_F(EtcdClusterTest, AClaimWhoseAnswerDidNotComeIsDoneOnce) {
  start(3);
  const auto store = open();
  const auto seen = store->look();
  ASSERT_TRUE(seen);
  // The request waits in the member that hangs, and the store asks the next.
  cluster_->signal(0, SIGSTOP);
  const auto claimed = store->claim(*seen, leadership(1, 7));
  cluster_->signal(0, SIGCONT);
  for (int time = 0; time < 30 && answer(store->claim(*seen, leadership(1, 7))) != "done"; ++time) {
    std::this_thread::sleep_for(200ms);
  }
  EXPECT_EQ(answer(store->claim(*seen, leadership(1, 7))), "done") << "the same once more";
  EXPECT_EQ(answer(store->confirm()), "done");
  EXPECT_EQ(answer(store->claim(*seen, leadership(1, 8))), "lost") << "another";
  EXPECT_EQ(answer(store->confirm()), "done");
  EXPECT_EQ(load(*store), Records());
}

TEST_F(EtcdClusterTest, TokensThatHaveEndedAreRenewed) {
  start(1, {"--auth-token-ttl=1"});
  const auto store = leader(1);
  for (int record = 0; record < 2; ++record) {
    std::this_thread::sleep_for(2500ms);
    ASSERT_EQ(answer(store->append("r" + std::to_string(record))), "done");
    ASSERT_EQ(answer(store->confirm()), "done");
  }
  // Neither does a restart matter, after which etcd knows no token.
  cluster_->kill(0);
  cluster_->start(0);
  cluster_->await(0);
  ASSERT_EQ(answer(store->append("r2")), "done");
  cluster_->kill(0);
  cluster_->start(0);
  cluster_->await(0);
  const auto begun = std::chrono::steady_clock::now();
  store->wait(500ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 3s);
  EXPECT_EQ(load(*store), (Records{"r0", "r1", "r2"}));
}

// Members are killed and hang while a leader appends, replaces and confirms.
TEST_F(EtcdClusterTest, NothingIsLostWhileMembersComeAndGo) {
  start(3);
  const auto store = leader(1);
  std::atomic<bool> is_over = false;
  Records all;
  std::string problem;
  std::thread writer([&] {
    for (int number = 0; !is_over && problem.empty(); ++number) {
      const std::string record = "record " + std::to_string(number);
      if (number % 50 == 49) {
        auto done = store->replace(record);
        for (int time = 0; time < 30 && !done; ++time) done = store->replace(record);
        if (!done) problem = answer(done);
        all = {record};
      } else {
        if (const std::string said = append(*store, record); said != "done") problem = said;
        all.push_back(record);
      }
      if (number % 10 == 0) (void)store->confirm();
    }
  });
  // In this thread: a member ends with the thread that has started it.
  for (std::size_t round = 0; round < 4; ++round) {
    const std::size_t member = round % 3;
    if (round % 2 == 0) {
      cluster_->kill(member);
      std::this_thread::sleep_for(700ms);
      cluster_->start(member);
    } else {
      cluster_->signal(member, SIGSTOP);
      std::this_thread::sleep_for(1500ms);
      cluster_->signal(member, SIGCONT);
    }
    cluster_->await(member);
  }
  is_over = true;
  writer.join();
  EXPECT_EQ(problem, "");
  EXPECT_EQ(load(*store), all);
  const auto next = leader(2);
  EXPECT_EQ(load(*next), all);
  EXPECT_EQ(answer(store->append("late")), "lost");
}

}  // namespace
}  // namespace vpfs::control
