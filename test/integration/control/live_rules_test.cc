// Rules that vpfsctl changes while a real vpfs-proxy runs.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "test/integration/control/live_proxy.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

TEST(LiveRules, ARuleIsStartedChangedAndStoppedUnderRequests) {
  LiveProxy live;
  ProxiedLink link = live.open();
  live.serve(link, "a");
  live.run({"rule", "start", "night", "jobid=a", "weight=4"});
  ASSERT_TRUE(comes_true([&] {
    live.serve(link, "a");
    return live.rule("night")["hits"] > 0;
  }));
  EXPECT_EQ(live.rule("night")["origin"], "administrator");
  EXPECT_EQ(live.rule("jobs")["origin"], "file");
  EXPECT_THAT(live.rules(), ElementsAre("night", "jobs", "default"));
  live.run({"rule", "change", "night", "weight=8"});
  bool found = false;
  for (const Json& each : live.data({"stat"})["virtual_pfs"]) {
    if (each["name"] != "night") continue;
    found = true;
    EXPECT_EQ(each["weight"], 8);
  }
  EXPECT_TRUE(found);
  live.run({"rule", "stop", "night"});
  live.serve(link, "a");
  EXPECT_THAT(live.rules(), ElementsAre("jobs", "default"));
  const std::string audit = read_text(live.audit());
  EXPECT_THAT(audit, HasSubstr("rule start night jobid=a weight=4"));
  EXPECT_THAT(audit, HasSubstr("rule stop night"));
  struct stat status = {};
  ASSERT_EQ(::stat(live.audit().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST(LiveRules, AProxyThatIsBusyIsNotUnreachableAndDoesWhatWasAsked) {
  const LiveProxy live;
  const TemporaryDirectory directory;
  std::string text = "rules:\n";
  for (int i = 0; i < 10'000; ++i) text += fmt::format("- {{name: r{0}, match: jobid=a{0}}}\n", i);
  const Outcome outcome =
      live.ctl({"rule", "apply", "-f", directory.write("r.yaml", text), "--timeout", "50ms"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.errors,
            "vpfsctl: s0: no answer within 50 ms: it is there but busy, and may still do what was "
            "asked; --timeout waits longer\n");
  // The next question waits for its turn.
  const Outcome after = live.ctl({"rule", "list", "--timeout", "30s"});
  EXPECT_EQ(after.code, 0) << after.errors;
  EXPECT_THAT(after.output, HasSubstr("r9999"));
  text.append(std::size_t{4} << 20, '#');
  const Outcome long_one = live.ctl({"rule", "apply", "-f", directory.write("l.yaml", text)});
  EXPECT_EQ(long_one.code, 1);
  EXPECT_THAT(long_one.errors, HasSubstr("bytes, and a control port takes 4194304\n"));
}

TEST(LiveRules, SurviveTheDeathOfTheProxyAndHalfALineOfTheJournal) {
  LiveProxy live;
  live.run({"rule", "start", "night", "jobid=a", "weight=4"});
  live.run({"rule", "start", "day", "jobid=b", "rate=5MiB/s"});
  live.proxy().kill();
  live.proxy().start();
  EXPECT_THAT(live.rules(), ElementsAre("day", "night", "jobs", "default"));
  live.proxy().kill();
  std::ofstream(live.journal(), std::ios::app) << "1c291ca3 {\"v\":2,\"n\":3,\"op\":\"rule_st";
  live.proxy().start();
  EXPECT_TRUE(live.proxy().logs("was not written to its end"));
  EXPECT_THAT(live.rules(), ElementsAre("day", "night", "jobs", "default"));
  live.run({"rule", "stop", "day"});
  live.proxy().kill();
  live.proxy().start();
  EXPECT_THAT(live.rules(), ElementsAre("night", "jobs", "default"));
}

TEST(LiveRules, AReloadReplacesOnlyTheFilesRules) {
  LiveProxy live;
  live.run({"rule", "start", "night", "jobid=a", "weight=4"});
  const std::string other =
      "[{name: tests, match: {hint: {jobid: 't*'}}, virtual_pfs: 'job-{jobid}'}]";
  live.proxy().reload(live.settings(other));
  EXPECT_THAT(live.rules(), ElementsAre("night", "tests", "default"));
  live.proxy().reload(live.settings(LiveProxy::kRules));
  EXPECT_THAT(live.rules(), ElementsAre("night", "jobs", "default"));
}

TEST(LiveRules, AFileThatClashesWithALiveRuleIsRefusedAndChangesNothing) {
  LiveProxy live;
  live.run({"rule", "start", "night", "jobid=a", "weight=4"});
  ProxySettings clashing =
      live.settings("[{name: night, match: {hint: {jobid: x}}, virtual_pfs: 'job-{jobid}'}]");
  live.proxy().reload(clashing);
  EXPECT_TRUE(live.proxy().logs("the live rule night does not fit this file"));
  EXPECT_THAT(live.rules(), ElementsAre("night", "jobs", "default"));
  const Outcome outcome = live.ctl({"reload"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("the live rule night does not fit this file"));
  live.run({"rule", "stop", "night"});
  live.run({"reload"});
  EXPECT_THAT(live.rules(), ElementsAre("night", "default"));
  EXPECT_EQ(live.rule("night")["origin"], "file");
}

TEST(LiveRules, ASetIsAppliedWithItsDifferenceAndGoesBackByItself) {
  LiveProxy live;
  live.run({"rule", "start", "old", "jobid=a", "weight=4"});
  const std::string file =
      live.directory().write("set.yaml", "rules: [{name: new, match: 'jobid=b', weight: 2}]\n");
  const Outcome dry = live.ctl({"rule", "apply", "-f", file, "--dry-run"});
  EXPECT_EQ(dry.code, 0);
  EXPECT_THAT(dry.output, HasSubstr("new"));
  EXPECT_THAT(live.rules(), ElementsAre("old", "jobs", "default"));
  live.run({"rule", "apply", "-f", file, "--confirm", "5s"});
  EXPECT_THAT(live.rules(), ElementsAre("new", "jobs", "default"));
  EXPECT_EQ(live.ctl({"rule", "start", "x", "jobid=x"}).code, 1) << "the set waits";
  EXPECT_TRUE(comes_true([&] { return live.rules().front() == "old"; }));
  EXPECT_THAT(live.rules(), ElementsAre("old", "jobs", "default"));
  live.run({"rule", "apply", "-f", file, "--confirm", "60s"});
  live.run({"rule", "confirm"});
  live.run({"rule", "rollback", "1"});
  EXPECT_THAT(live.rules(), ElementsAre("old", "jobs", "default"));
}

TEST(LiveRules, ADeadlineThatPassedWhileTheProxyWasDownRollsBackBeforeAnyClientCanConnect) {
  LiveProxy live;
  const std::string file =
      live.directory().write("set.yaml", "rules: [{name: bold, match: 'jobid=b', weight: 2}]\n");
  live.run({"rule", "apply", "-f", file, "--confirm", "3s"});
  live.proxy().kill();
  std::this_thread::sleep_for(4100ms);
  live.proxy().start();
  const std::string log = live.proxy().process().errors();
  const std::size_t back = log.find("version 1 was not confirmed in time: back to version 0");
  ASSERT_NE(back, std::string::npos) << log;
  EXPECT_LT(back, log.find("listens at"));
  EXPECT_THAT(live.rules(), ElementsAre("jobs", "default"));
}

TEST(LiveRules, ForEndsARuleByItself) {
  LiveProxy live;
  live.run({"rule", "start", "short", "jobid=a", "weight=4", "for=5s"});
  EXPECT_THAT(live.rules(), ElementsAre("short", "jobs", "default"));
  EXPECT_GT(live.rule("short")["until_at"], 0);
  EXPECT_TRUE(comes_true([&] { return live.rules().front() == "jobs"; }));
  live.proxy().kill();
  live.proxy().start();
  EXPECT_THAT(live.rules(), ElementsAre("jobs", "default"));
}

TEST(LiveRules, AShadowRuleHoldsNothingAndSaysWhatItWouldHold) {
  LiveProxy live;
  live.run({"rule", "start", "limit", "jobid=a", "rate=1KiB/s", "mode=shadow"});
  ProxiedLink link = live.open();
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(comes_true([&] {
    live.serve(link, "a");
    return live.rule("limit")["would_hold"].value("requests", 0) > 0;
  }));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 20s) << "64 KiB at 1 KiB/s take 64 s";
  const Json rule = live.rule("limit");
  EXPECT_EQ(rule["shadow"], true);
  EXPECT_GE(rule["would_hold"]["bytes"], 65536);
  EXPECT_GT(live.rule("jobs")["hits"], 0) << "the rule in force is another one";
}

TEST(LiveRules, BypassLetsHeldRequestsGoAtOnceAndIsLoud) {
  LiveProxy live(1);
  ProxiedLink link = live.open();
  for (int i = 0; i < 5; ++i) live.ask(link, "a");
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(live.proxy().wait_for_queued(4));
  ASSERT_FALSE(link.server.readable(50ms));
  live.run({"bypass", "on"});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(link.server.receive()) << i;
  live.ask(link, "a");
  ASSERT_TRUE(link.server.receive()) << "nothing is held";
  EXPECT_TRUE(live.proxy().logs("bypass"));
  EXPECT_THAT(live.ctl({"status"}).output, HasSubstr("bypass"));
  EXPECT_EQ(live.data({"stat"})["bypass"], true);
  live.run({"bypass", "off"});
  for (orangefs::Tag tag = 1; tag <= 6; ++tag) {
    ASSERT_TRUE(link.server.send(io_response(tag, 0)));
    ASSERT_TRUE(link.client.receive());
  }
  ASSERT_TRUE(live.proxy().wait_for_outstanding(0));
  live.ask(link, "a");
  live.ask(link, "a");
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(live.proxy().wait_for_queued(1)) << "requests are scheduled again";
}

TEST(LiveRules, BypassSurvivesTheDeathOfTheProxyAndEndsByItself) {
  LiveProxy live(1);
  live.run({"bypass", "on", "for=3s"});
  live.proxy().kill();
  live.proxy().start();
  EXPECT_TRUE(comes_true([&] { return live.data({"stat"})["bypass"] == false; }));
}

TEST(LiveRules, ExemptRequestsAreNeverHeld) {
  LiveProxy live(1);
  live.run({"rule", "start", "root", "jobid=root", "exempt"});
  ProxiedLink link = live.open();
  live.ask(link, "a");
  ASSERT_TRUE(link.server.receive());
  live.ask(link, "a");
  ASSERT_TRUE(live.proxy().wait_for_queued(1));
  ProxiedLink other = live.open();
  live.ask(other, "root");
  ASSERT_TRUE(other.server.receive()) << "it waits behind the depth";
  EXPECT_EQ(live.proxy().status()["queued"], 1);
}

TEST(LiveRules, ARuleThatNeverAppliesIsAWarningWithBothNames) {
  LiveProxy live;
  live.run({"rule", "start", "one", "jobid=a"});
  const Outcome outcome = live.ctl({"rule", "start", "all", "jobid=*"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.errors, HasSubstr("rule one never applies: all before it"));
}

TEST(LiveRules, WhatTheWireDoesNotShowIsRefusedWithTheReason) {
  LiveProxy live;
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"rule", "start", "x", "jobid=a", "rate=5"},
                                             {"rule", "start", "x", "target=3"},
                                             {"rule", "start", "x", "jobid=a", "total_rate=5MiB/s"},
                                             {"rule", "stop", "default"},
                                             {"rule", "stop", "jobs"},
                                             {"rule", "change", "nobody", "weight=3"}}) {
    const Outcome outcome = live.ctl(wrong);
    EXPECT_EQ(outcome.code, 1) << wrong[2] << " " << wrong.back();
    EXPECT_THAT(outcome.errors, HasSubstr("refused: "));
  }
  EXPECT_THAT(live.rules(), ElementsAre("jobs", "default"));
}

TEST(LiveRules, DrainLetsOutstandingRequestsFinish) {
  LiveProxy live;
  ProxiedLink link = live.open();
  live.ask(link, "a");
  const auto request = link.server.receive();
  ASSERT_TRUE(request);
  live.run({"drain"});
  EXPECT_TRUE(live.proxy().process().running());
  ASSERT_TRUE(link.server.send(io_response(request->header.tag, 0)));
  EXPECT_TRUE(link.client.receive());
  link.client.close();
  const auto exit = live.proxy().process().wait();
  ASSERT_TRUE(exit);
  EXPECT_TRUE(exit->ok());
}

}  // namespace
}  // namespace vpfs::test
