// What was done, as vpfsctl tells it of real proxies.

#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "test/integration/control/live_coordinator.h"
#include "test/integration/control/live_proxy.h"
#include "test/support/comes_true.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

Json find(const Json& past, const std::string& name) {
  for (const Json& each : past["virtual_pfs"]) {
    if (each["name"] == name) return each;
  }
  return {};
}

TEST(LivePast, AJobThatHasEndedIsExplainedWithTheRulesOfThen) {
  LiveProxy live;
  ProxiedLink link = live.open();
  live.run({"rule", "start", "mine", "jobid=4711", "weight=7"});
  for (int i = 0; i < 5; ++i) live.serve(link, "4711");
  live.serve(link, "other");
  ASSERT_TRUE(comes_true([&] { return live.ctl({"why", "4711"}).code == 0; }));
  live.run({"rule", "stop", "mine"});

  const Json past = live.data({"why", "4711"});
  const Json mine = find(past, "mine");
  EXPECT_EQ(mine["asked"], true);
  EXPECT_EQ(mine["weight"], 7);
  EXPECT_EQ(mine["operations"], 5);
  EXPECT_EQ(mine["rules"], Json::array({"mine"}));
  EXPECT_EQ(find(past, "job-other")["asked"], false);
  const Outcome why = live.ctl({"why", "4711", "--since", "1h"});
  EXPECT_THAT(why.output, HasSubstr("mine, job 4711: weight 7; rule mine\n"));
  EXPECT_THAT(why.output, HasSubstr("job-other"));
  EXPECT_THAT(live.ctl({"fairness"}).output, HasSubstr("Jain's index"));
  EXPECT_EQ(live.ctl({"why", "127.0.0.1"}).code, 0) << "its connection is still there";
}

TEST(LivePast, AMistakeIsOneClearErrorAndNothingIsAsked) {
  const LiveProxy live;
  const Outcome nobody = live.ctl({"why", "never"});
  EXPECT_EQ(nobody.code, 1);
  EXPECT_EQ(nobody.output, "");
  EXPECT_THAT(nobody.errors, Not(HasSubstr("weight")));
  EXPECT_EQ(live.ctl({"why"}).code, 2);
  const Outcome future = live.ctl({"why", "x", "--at", "2999-01-01 00:00"});
  EXPECT_EQ(future.code, 2);
  EXPECT_THAT(future.errors, HasSubstr("--at: 2999-01-01 00:00 is yet to come"));
  EXPECT_EQ(live.ctl({"why", "x", "--since", "1h", "--at", "12:00"}).code, 2);
}

TEST(LivePast, AReloadForgetsNothing) {
  LiveProxy live;
  ProxiedLink link = live.open();
  live.serve(link, "a");
  ASSERT_TRUE(comes_true([&] { return live.ctl({"why", "a"}).code == 0; }));
  live.run({"reload"});
  EXPECT_EQ(find(live.data({"why", "a"}), "job-a")["operations"], 1);
}

TEST(LivePast, ARestartForgetsNothingWithAFile) {
  const TemporaryDirectory folder;
  const std::string file = folder.path() / "history";
  LiveProxy live(16, "history: " + file);
  {
    ProxiedLink link = live.open();
    for (int i = 0; i < 3; ++i) live.serve(link, "a");
    ASSERT_TRUE(comes_true([&] { return live.ctl({"why", "a"}).code == 0; }));
  }
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_EQ(live.proxy().process().stop().code, 0);
    live.proxy().start();
    EXPECT_EQ(find(live.data({"why", "a"}), "job-a")["operations"], 3);
  }
  live.proxy().kill();
  std::ofstream(file, std::ios::app) << "0123abcd {\"v\":1,\"minu";  // half a line
  live.proxy().start();
  EXPECT_EQ(find(live.data({"why", "a"}), "job-a")["operations"], 3);
  EXPECT_TRUE(live.proxy().logs("control.history: "));
}

TEST(LivePast, DamagedFilesOfThePastKeepNoProxyFromStarting) {
  const TemporaryDirectory folder;
  const std::string history = folder.write("history", "0123abcd {}\n0123abcd {}\n");
  const std::string ledger = folder.write("ledger", "no record\nof anything\n");
  LiveProxy live(16, fmt::format("history: {}, ledger: {}", history, ledger));
  EXPECT_TRUE(live.proxy().logs("control.history: " + history + ":1: "));
  EXPECT_TRUE(live.proxy().logs("control.ledger: " + ledger));
  ProxiedLink link = live.open();
  live.serve(link, "a");
  EXPECT_TRUE(comes_true([&] { return live.ctl({"why", "a"}).code == 0; }));
  EXPECT_EQ(live.proxy().process().stop().code, 0);
  EXPECT_EQ(read_text(history), "0123abcd {}\n0123abcd {}\n") << "it is left alone";
  EXPECT_EQ(read_text(ledger), "no record\nof anything\n");
  live.proxy().start();
}

TEST(LivePast, TheLedgerHasWhatALimitHeldAlsoAfterARestart) {
  const TemporaryDirectory folder;
  LiveProxy live(16, fmt::format("ledger: {}/ledger", folder.path().string()));
  live.run({"rule", "start", "slow", "jobid=a", "rate=16KiB/s", "burst=1KiB"});
  {
    ProxiedLink link = live.open();
    ASSERT_TRUE(comes_true([&] {
      live.serve(link, "a");
      return live.data({"ledger"})["entries"].size() > 0;
    }));
    const Json entry = live.data({"ledger", "a"})["entries"][0];
    EXPECT_EQ(entry["name"], "slow");
    EXPECT_EQ(entry["rule"], "slow");
    EXPECT_EQ(entry["rate"], 16384);
    EXPECT_EQ(entry["goes_on"], true);
    EXPECT_THAT(live.ctl({"ledger"}).output, HasSubstr("limit 16 KiB/s"));
  }
  EXPECT_EQ(live.proxy().process().stop().code, 0);
  live.proxy().start();
  const Json entries = live.data({"ledger", "a"})["entries"];
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0]["goes_on"], false);
  EXPECT_EQ(live.data({"ledger", "other"})["entries"].size(), 0U);
}

TEST(LivePast, ProxiesOfASiteAreAddedUp) {
  LiveProxy one;
  LiveProxy other;
  LiveCoordinator site({{"ds1", one.socket()}, {"ds2", other.socket()}});
  ProxiedLink first = one.open();
  ProxiedLink second = other.open();
  one.serve(first, "a");
  other.serve(second, "a");
  other.serve(second, "a");
  ASSERT_TRUE(comes_true([&] {
    return site.stage("ds1")["connected"] == true && site.stage("ds2")["connected"] == true &&
           one.ctl({"why", "a"}).code == 0 && other.ctl({"why", "a"}).code == 0;
  }));
  const Outcome why = site.ctl({"why", "a"});
  EXPECT_EQ(why.code, 0) << why.errors;
  EXPECT_THAT(why.output, HasSubstr("at 2 servers"));
  EXPECT_THAT(why.output, HasSubstr("in 3 requests"));
  EXPECT_THAT(why.output, HasSubstr("slowest: ds"));
  EXPECT_EQ(site.answers({"why", "a"}).size(), 2U);
  one.proxy().kill();
  const Outcome half = site.ctl({"why", "a"});
  EXPECT_THAT(half.output, HasSubstr("at ds2"));
  EXPECT_THAT(half.errors, HasSubstr("ds1"));
  EXPECT_EQ(half.code, 4);
  one.proxy().start();
}

}  // namespace
}  // namespace vpfs::test
