#include "control/etcd/etcd_site_store.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "net/socket_options.h"
#include "test/control/etcd/store_fixture.h"
#include "test/control/store/site_store_cases.h"

// One etcd of one member for all tests of a process. Each has a site of its own in it.
namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class EtcdRig final : public SiteStoreRig {
 public:
  EtcdRig() {
    net::ignore_broken_pipes();
    skip_without_etcd();
    if (!::testing::Test::IsSkipped()) (void)one_member();  // a child must not start it
  }

  std::unique_ptr<SiteStore> open() override {
    return open_store(one_member().settings(), prefix_, 30s);
  }

 private:
  const std::string prefix_ = new_prefix();
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Etcd, SiteStoreCases, EtcdRig);

namespace {

class EtcdSiteStoreTest : public ::testing::Test {
 protected:
  EtcdSiteStoreTest() {
    net::ignore_broken_pipes();
    skip_without_etcd();
  }

  std::unique_ptr<EtcdSiteStore> open(Duration lease = 30s) {
    return open_store(one_member().settings(), prefix_, lease);
  }
  std::string ctl(std::vector<std::string> arguments) {
    return one_member().etcdctl(std::move(arguments));
  }
  std::string key(const std::string& name) const { return prefix_ + name; }
  std::string record_key(std::uint64_t generation, std::uint64_t number) const {
    return EtcdKeys(prefix_).record({.generation = generation, .number = number});
  }
  // The keys below rules/.
  std::string rules() { return ctl({"get", "--prefix", "--keys-only", key("rules/")}); }

  const std::string prefix_ = new_prefix();
};

TEST_F(EtcdSiteStoreTest, KeysAreWhereTheirDescriptionSaysAndHaveTheRecord) {
  const auto store = open();
  ASSERT_EQ(claim(*store, 7), "done");
  ASSERT_EQ(load(*store), Records());
  ASSERT_EQ(answer(store->append("one")), "done");
  const std::string record = to_record(leadership(1, 7));
  EXPECT_EQ(ctl({"get", "--print-value-only", key("term")}), record + "\n");
  EXPECT_EQ(ctl({"get", "--print-value-only", key("leader")}), record + "\n");
  EXPECT_EQ(
      ctl({"get", "--print-value-only", key("rules/00000000000000000000/00000000000000000001")}),
      "one\n");
  EXPECT_THAT(ctl({"get", "-w", "fields", key("leader")}),
              ::testing::Not(HasSubstr("\"Lease\" : 0")));
  EXPECT_THAT(ctl({"get", "-w", "fields", key("term")}), HasSubstr("\"Lease\" : 0"));
  ASSERT_EQ(answer(store->replace("all")), "done");
  EXPECT_EQ(ctl({"get", "--print-value-only", key("generation")}), "1\n");
  EXPECT_EQ(rules(), key("rules/00000000000000000001/00000000000000000001") + "\n\n");
}

TEST_F(EtcdSiteStoreTest, ALeaderThatConfirmsAndAStandbyThatLooksSendTwoRequestsEachTime) {
  const auto leader = open();
  const auto standby = open();
  ASSERT_EQ(claim(*leader, 1), "done");
  ASSERT_TRUE(standby->look());
  const std::uint64_t by_leader = leader->requests();
  const std::uint64_t by_standby = standby->requests();
  for (int time = 0; time < 5; ++time) {
    ASSERT_EQ(answer(leader->confirm()), "done");
    standby->wait(100ms);
    ASSERT_TRUE(standby->look());
  }
  EXPECT_EQ(leader->requests() - by_leader, 10U);
  EXPECT_EQ(standby->requests() - by_standby, 10U);
}

TEST_F(EtcdSiteStoreTest, AnAppendTakesOneRequest) {
  const auto store = open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  const std::uint64_t before = store->requests();
  for (int record = 0; record < 10; ++record) ASSERT_EQ(answer(store->append("record")), "done");
  EXPECT_EQ(store->requests() - before, 10U);
}

TEST_F(EtcdSiteStoreTest, WithoutConfirmationTheOfficeIsVacantAfterItsLease) {
  const auto store = open(2s);
  const auto standby = open(2s);
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  const auto begun = std::chrono::steady_clock::now();
  for (;;) {
    const auto seen = standby->look();
    ASSERT_TRUE(seen) << seen.error().text;
    if (seen->is_vacant) break;
    standby->wait(10s);
  }
  const auto took = std::chrono::steady_clock::now() - begun;
  EXPECT_GE(took, 1900ms);
  EXPECT_LE(took, 4s);
  EXPECT_EQ(answer(store->append("late")), "lost");
  EXPECT_EQ(answer(store->replace("late")), "lost");
  EXPECT_EQ(answer(store->confirm()), "lost");
  EXPECT_EQ(answer(store->resign()), "lost");
  EXPECT_EQ(load(*store), Records{"lost"});
  const auto seen = standby->look();
  ASSERT_TRUE(seen && seen->leader);
  EXPECT_EQ(seen->leader->term, 1U);
  EXPECT_EQ(seen->least_term, 2U) << "terms do not go back";
  ASSERT_EQ(claim(*standby, 2), "done");
  EXPECT_EQ(load(*standby), Records());
}

TEST_F(EtcdSiteStoreTest, AnOfficeThatBecameVacantSinceItWasSeenCanBeClaimed) {
  const auto store = open(2s);
  const auto standby = open();
  ASSERT_EQ(claim(*store, 1), "done");
  const auto before_end = standby->look();
  ASSERT_TRUE(before_end);
  EXPECT_FALSE(before_end->is_vacant);
  standby->wait(10s);  // for the end of the lease
  ASSERT_EQ(answer(standby->claim(*before_end, leadership(2, 2))), "done");
  const auto before_resignation = store->look();
  ASSERT_TRUE(before_resignation);
  ASSERT_EQ(answer(standby->resign()), "done");
  ASSERT_EQ(answer(store->claim(*before_resignation, leadership(3, 3))), "done");
  EXPECT_EQ(answer(standby->claim(*before_resignation, leadership(4, 4))), "lost");
  EXPECT_EQ(answer(store->confirm()), "done");
}

TEST_F(EtcdSiteStoreTest, ConfirmationsKeepTheOffice) {
  const auto store = open(2s);
  ASSERT_EQ(claim(*store, 1), "done");
  for (int time = 0; time < 8; ++time) {
    std::this_thread::sleep_for(500ms);
    ASSERT_EQ(answer(store->confirm()), "done");
  }
}

TEST_F(EtcdSiteStoreTest, AWaitEndsWithAClaimAndWithAResignation) {
  const auto store = open();
  const auto standby = open();
  ASSERT_TRUE(standby->look());
  const auto waits_for = [&](const auto& change) {
    const auto begun = std::chrono::steady_clock::now();
    std::thread other([&] {
      std::this_thread::sleep_for(200ms);
      change();
    });
    standby->wait(20s);
    const auto took = std::chrono::steady_clock::now() - begun;
    other.join();
    return took;
  };
  EXPECT_LT(waits_for([&] { EXPECT_EQ(claim(*store, 1), "done"); }), 5s);
  ASSERT_TRUE(standby->look());
  EXPECT_LT(waits_for([&] { EXPECT_EQ(answer(store->resign()), "done"); }), 5s);
  // Without another look() it has been told already.
  const auto begun = std::chrono::steady_clock::now();
  standby->wait(20s);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
}

TEST_F(EtcdSiteStoreTest, RecordsDoNotEndAWait) {
  const auto store = open();
  const auto standby = open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  ASSERT_TRUE(standby->look());
  ASSERT_EQ(answer(store->append("one")), "done");
  ASSERT_EQ(answer(store->confirm()), "done");
  const auto begun = std::chrono::steady_clock::now();
  standby->wait(500ms);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 500ms);
}

TEST_F(EtcdSiteStoreTest, ALongRecordIsStoredInParts) {
  const auto store = open();
  std::string big(2'300'000, ' ');
  for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(' ' + i * i % 95);
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  ASSERT_EQ(answer(store->append("small")), "done");
  ASSERT_EQ(answer(store->append(big)), "done");
  ASSERT_EQ(answer(store->append("after")), "done");
  EXPECT_TRUE(load(*store) == (Records{"small", big, "after"}));
  big[1'000'000] = '*';
  ASSERT_EQ(answer(store->replace(big)), "done");
  ASSERT_EQ(answer(store->append("one")), "done");
  const auto next = open();
  ASSERT_EQ(claim(*next, 2), "done");
  EXPECT_TRUE(load(*next) == (Records{big, "one"}));
  EXPECT_FALSE(next->wants_replacing());
}

TEST_F(EtcdSiteStoreTest, PartsOfARecordThatWasNotWrittenToItsEndAreIgnoredAndOverwritten) {
  const auto store = open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  ASSERT_EQ(answer(store->append("one")), "done");
  for (const char* part : {"0000", "0001", "0002", "0003"}) {
    (void)ctl({"put", record_key(0, 2) + "/" + part, "left over"});
  }
  // A generation that was not finished.
  (void)ctl({"put", record_key(1, 1) + "/0000", "left over"});
  const auto next = open();
  ASSERT_EQ(claim(*next, 2), "done");
  EXPECT_EQ(load(*next), Records{"one"});
  const std::string big(1'500'000, 'b');
  ASSERT_EQ(answer(next->append(big)), "done");
  EXPECT_TRUE(load(*next) == (Records{"one", big}));
  (void)ctl({"put", record_key(0, 3) + "/0000", "left over"});
  ASSERT_EQ(answer(next->append("three")), "done");
  EXPECT_TRUE(load(*next) == (Records{"one", big, "three"}));
  (void)ctl({"put", record_key(1, 1) + "/0000", "left over"});
  ASSERT_EQ(answer(next->replace("all")), "done");
  EXPECT_EQ(load(*next), Records{"all"});
}

TEST_F(EtcdSiteStoreTest, DamagedKeysAreNamedAndStay) {
  const auto store = open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  for (const char* record : {"one", "two", "three"}) {
    ASSERT_EQ(answer(store->append(record)), "done");
  }
  const auto damage_of = [&] {
    const auto loaded = store->load();
    if (loaded || loaded.error().why != SiteStore::Why::damaged) return std::string("not damaged");
    return loaded.error().text;
  };
  (void)ctl({"put", key("rules/00000000000000000000/zzz"), "x"});
  EXPECT_THAT(damage_of(), HasSubstr("etcd " + key("rules/00000000000000000000/zzz")));
  (void)ctl({"del", key("rules/00000000000000000000/zzz")});
  (void)ctl({"put", record_key(0, 2), "t\two"});
  EXPECT_THAT(damage_of(), HasSubstr("etcd " + record_key(0, 2)));
  (void)ctl({"del", record_key(0, 2)});
  EXPECT_THAT(damage_of(), HasSubstr("etcd " + record_key(0, 2) + ": this record is missing"));
  (void)ctl({"put", record_key(0, 2), "two"});
  EXPECT_EQ(load(*store), (Records{"one", "two", "three"}));
  (void)ctl({"put", key("generation"), "1x"});
  EXPECT_THAT(damage_of(), HasSubstr("etcd " + key("generation")));
  (void)ctl({"put", key("term"), "{}"});
  const auto seen = store->look();
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().why, SiteStore::Why::damaged);
  EXPECT_THAT(seen.error().text, HasSubstr("etcd " + key("term")));
}

TEST_F(EtcdSiteStoreTest, ThousandsOfRecordsAreLoadedInPages) {
  auto store = open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  Records all;
  for (int record = 0; record < 1'050; ++record) {
    all.push_back("record " + std::to_string(record));
    ASSERT_EQ(answer(store->append(all.back())), "done");
    ASSERT_EQ(store->wants_replacing(), record >= 1'000);
  }
  const std::uint64_t before = store->requests();
  EXPECT_TRUE(load(*store) == all);
  EXPECT_EQ(store->requests() - before, 5U)
      << "one for the generation, two pages with one for the lease between them, one to clear up";
  EXPECT_TRUE(store->wants_replacing());
  ASSERT_EQ(answer(store->replace("all")), "done");
  EXPECT_FALSE(store->wants_replacing());
  EXPECT_EQ(load(*store), Records{"all"});
}

TEST_F(EtcdSiteStoreTest, AnotherClientMayCompact) {
  const auto store = open();
  const auto standby = open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  ASSERT_TRUE(standby->look());
  Records all;
  for (int record = 0; record < 20; ++record) {
    all.push_back("record " + std::to_string(record));
    ASSERT_EQ(answer(store->append(all.back())), "done");
  }
  one_member().compact();
  // What it saw is older than what is kept, so it has to look again.
  const auto begun = std::chrono::steady_clock::now();
  standby->wait(20s);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
  ASSERT_TRUE(standby->look());
  EXPECT_EQ(load(*store), all);
  ASSERT_EQ(answer(store->append("more")), "done");
  ASSERT_EQ(answer(store->confirm()), "done");
}

TEST_F(EtcdSiteStoreTest, ARecordThatIsTooLongIsRefused) {
  const auto store = open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  const auto appended = store->append(std::string((std::size_t{100} << 20) + 1, 'x'));
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().why, SiteStore::Why::refused);
  EXPECT_EQ(answer(store->append("one")), "done");
  EXPECT_EQ(load(*store), Records{"one"});
}

TEST_F(EtcdSiteStoreTest, WhatTheUserMayNotDoIsRefused) {
  const auto store = open_store(one_member().settings(), "/elsewhere/", 30s);
  const auto seen = store->look();
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().why, SiteStore::Why::refused);
  EXPECT_THAT(seen.error().text, HasSubstr("permission denied"));
  EtcdSettings wrong = one_member().settings();
  wrong.password = "another";
  const auto stranger = open_store(wrong, prefix_, 30s);
  const auto unseen = stranger->look();
  ASSERT_FALSE(unseen);
  EXPECT_EQ(unseen.error().why, SiteStore::Why::refused);
  EXPECT_THAT(unseen.error().text, HasSubstr("authentication failed"));
  EXPECT_THAT(unseen.error().text, ::testing::Not(HasSubstr("another")));
  EtcdSettings without = one_member().settings();
  without.files.certificate = without.files.key = "";
  EXPECT_FALSE(open_store(without, prefix_, 30s)->look());
}

TEST(EtcdSiteStoreSettings, ALeaseHasWholeSecondsAndAtLeastTwo) {
  const SystemClock clock;
  for (const Duration lease : {Duration(1s), Duration(0s), Duration(2500ms), Duration(-3s)}) {
    EXPECT_FALSE(EtcdSiteStore::make({.etcd = {.endpoints = {"http://127.0.0.1:1"}},
                                      .prefix = default_etcd_prefix("site"),
                                      .lease = lease},
                                     clock));
  }
  EXPECT_EQ(default_etcd_prefix("site"), "/vpfs/site/");
}

}  // namespace
}  // namespace vpfs::control
