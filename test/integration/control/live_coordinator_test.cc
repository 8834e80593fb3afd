// A real vpfs-coordinator, real proxies, and vpfsctl.
#include "test/integration/control/live_coordinator.h"

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "test/integration/control/live_proxy.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

bool has(const LiveProxy& proxy, const std::string& rule) {
  for (const std::string& each : proxy.rules()) {
    if (each == rule) return true;
  }
  return false;
}

bool both_have(const LiveProxy& one, const LiveProxy& other, const std::string& rule) {
  return has(one, rule) && has(other, rule);
}

// Whether the site's rules are in force at the stage.
bool is_settled(const LiveCoordinator& site, const std::string& stage) {
  const Json row = site.stage(stage);
  return !row.is_null() && row["rules"]["state"] == "in force";
}

TEST(LiveCoordinator, ARuleIsInForceAtEveryProxyAndAtOneThatComesLater) {
  LiveProxy one;
  LiveProxy other;
  LiveProxy later;
  later.proxy().kill();
  const LiveCoordinator site(
      {{"ds1", one.socket()}, {"ds2", other.socket()}, {"ds3", later.socket()}});
  ASSERT_TRUE(comes_true([&] { return is_settled(site, "ds1") && is_settled(site, "ds2"); }));
  const Outcome outcome =
      site.ctl({"rule", "start", "gold", "jobid=a", "weight=4", "total_rate=1GiB/s"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("ds3 is not connected: it gets the rules when it comes"));
  for (const LiveProxy* each : {&one, &other}) {
    EXPECT_EQ(each->rule("gold")["origin"], "coordinator") << "the reply came after it";
    EXPECT_THAT(each->rule("gold")["words"], Contains("weight=4"));
    EXPECT_THAT(each->rule("gold")["words"], Not(Contains("total_rate=1GiB/s")));
  }
  later.proxy().start();
  EXPECT_TRUE(comes_true([&] { return has(later, "gold"); }));
  site.run({"rule", "change", "gold", "weight=7"});
  for (const LiveProxy* each : {&one, &other, &later}) {
    EXPECT_THAT(each->rule("gold")["words"], Contains("weight=7"));
  }
  site.run({"rule", "stop", "gold"});
  EXPECT_FALSE(has(one, "gold") || has(other, "gold") || has(later, "gold"));
}

TEST(LiveCoordinator, RulesSurviveTheDeathOfTheCoordinatorAndOfAProxy) {
  LiveProxy one;
  LiveProxy other;
  LiveCoordinator site({{"ds1", one.socket()}, {"ds2", other.socket()}});
  ASSERT_TRUE(comes_true([&] { return is_settled(site, "ds1") && is_settled(site, "ds2"); }));
  site.run({"rule", "start", "gold", "jobid=a", "weight=4", "total_rate=1GiB/s"});
  site.run({"job", "start", "4711", "--nodes", "4", "--uid", "1000", "--clients", "127.0.0.1"});
  const std::uint64_t term = site.status()["term"];
  site.kill();
  EXPECT_TRUE(both_have(one, other, "gold"));
  one.proxy().kill();
  one.proxy().start();
  EXPECT_TRUE(has(one, "gold")) << "from its own journal: no coordinator ran";
  site.start();
  ASSERT_TRUE(comes_true([&] { return is_settled(site, "ds1") && is_settled(site, "ds2"); }));
  EXPECT_GT(site.status()["term"], term);
  EXPECT_TRUE(both_have(one, other, "gold"));
  const Json rules = site.answers({"rule", "list"})[0]["data"]["rules"];
  EXPECT_EQ(rules[0]["name"], "gold");
  EXPECT_THAT(rules[0]["words"], Contains("total_rate=1GiB/s"));
  EXPECT_EQ(other.data({"job", "list"})["jobs"][0]["jobid"], "4711");
  EXPECT_EQ(other.data({"job", "list"})["jobs"][0]["origin"], "coordinator");
  // What changed while a proxy was down is there when it is back.
  one.proxy().kill();
  site.run({"rule", "stop", "gold"});
  one.proxy().start();
  EXPECT_TRUE(comes_true([&] { return is_settled(site, "ds1"); }));
  EXPECT_FALSE(has(one, "gold"));
}

TEST(LiveCoordinator, WhatAProxyCannotDoIsToldByItsName) {
  LiveProxy one;
  const LiveCoordinator site({{"ds1", one.socket()}});
  ASSERT_TRUE(comes_true([&] { return is_settled(site, "ds1"); }));
  const Outcome outcome = site.ctl({"rule", "start", "x", "jobid=a", "class=interactive"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("ds1: "));
  EXPECT_THAT(outcome.errors, HasSubstr("class"));
  EXPECT_THAT(site.ctl({"status"}).output, HasSubstr("class"));
  EXPECT_EQ(site.ctl({"rule", "start", "y", "jobid=a", "wieght=3"}).code, 1)
      << "no stage knows this word";
}

TEST(LiveCoordinator, ClientsTopAndStatShowAllProxies) {
  LiveProxy one;
  LiveProxy other;
  LiveCoordinator site({{"ds1", one.socket()}, {"ds2", other.socket()}});
  ProxiedLink first = one.open();
  ProxiedLink second = other.open();
  one.serve(first, "a");
  other.serve(second, "a");
  other.serve(second, "b");
  ASSERT_TRUE(comes_true([&] {
    return site.stage("ds1")["connected"] == true && site.stage("ds2")["connected"] == true;
  }));
  const Json who = site.answers({"who", "a"});
  ASSERT_EQ(who.size(), 2U);
  for (const Json& each : who) EXPECT_EQ(each["data"]["virtual_pfs"][0]["name"], "job-a");
  const Outcome stat = site.ctl({"stat"});
  EXPECT_EQ(stat.code, 0) << stat.errors;
  EXPECT_THAT(stat.output, HasSubstr("job-a"));
  EXPECT_THAT(stat.output, HasSubstr("job-b"));
  EXPECT_THAT(site.ctl({"top", "-n", "1", "-d", "200ms", "--each"}).output, HasSubstr("ds2"));
  EXPECT_THAT(site.ctl({"job_stats"}).output, HasSubstr("obdfilter.ds1.job_stats="));
  // The hits of the files' rules at both proxies together.
  const auto hits_of = [](const Json& rules, const std::string& name) {
    std::uint64_t hits = 0;
    for (const Json& each : rules) {
      if (each["name"] == name) hits += each["hits"].get<std::uint64_t>();
    }
    return hits;
  };
  const std::string used = one.data({"stat"})["virtual_pfs"][1]["rule"];
  const Json of_site = site.answers({"rule", "list"})[0]["data"]["rules"];
  EXPECT_EQ(hits_of(of_site, used), 3U) << of_site.dump(1);
  EXPECT_EQ(hits_of(of_site, used), hits_of(one.data({"rule", "list"})["rules"], used) +
                                        hits_of(other.data({"rule", "list"})["rules"], used));
  const Outcome mistaken = vpfsctl({"stat", "--proxy", site.socket()});
  EXPECT_EQ(mistaken.code, 3) << mistaken.output;
  EXPECT_THAT(mistaken.errors, HasSubstr("is a coordinator, and not a proxy: --coordinator"));
  const Outcome reversed = vpfsctl({"rule", "list", "--coordinator", one.socket()});
  EXPECT_EQ(reversed.code, 3) << reversed.output;
  EXPECT_THAT(reversed.errors, HasSubstr("is a proxy or a mount, and not a coordinator: --proxy"));
  const Outcome bypass = site.ctl({"bypass", "on", "--stage", "ds2"});
  EXPECT_EQ(bypass.code, 0) << bypass.errors;
  EXPECT_EQ(one.data({"stat"})["bypass"], false);
  EXPECT_EQ(other.data({"stat"})["bypass"], true);
  one.proxy().kill();
  ASSERT_TRUE(comes_true([&] { return site.stage("ds1")["connected"] == false; }));
  EXPECT_EQ(site.ctl({"stat"}).code, 4);
  EXPECT_EQ(site.ctl({"status"}).code, 4);
  EXPECT_THAT(site.ctl({"status"}).output, HasSubstr("ABSENT"));
  one.proxy().start();
}

TEST(LiveCoordinator, ARateOfTheWholeSiteBoundsTheJobInTheCycles) {
  LiveProxy one;
  const LiveCoordinator site({{"ds1", one.socket()}}, "jobs:\n  - {name: job-b, weight: 9}\n");
  ProxiedLink link = one.open();
  one.serve(link, "a");
  one.serve(link, "b");
  const auto job = [&](const std::string& name) {
    for (const Json& each : site.status()["jobs"]) {
      if (each["name"] == name) return each;
    }
    return Json(nullptr);
  };
  ASSERT_TRUE(comes_true([&] { return !job("job-a").is_null(); }));
  site.run({"rule", "start", "job-{jobid}", "jobid=*", "total_rate=3MiB/s", "total_iops=2k"});
  EXPECT_TRUE(comes_true([&] { return job("job-a")["most"]["bytes"] == 3 << 20; }))
      << "of its template, which the proxy has told";
  EXPECT_EQ(job("job-a")["most"]["operations"], 2000);
  EXPECT_EQ(job("job-b")["most"]["bytes"], 0) << "it has an entry of its own";
  EXPECT_EQ(job("job-b")["weight"], 9);
  site.run({"rule", "stop", "job-{jobid}"});
  EXPECT_TRUE(comes_true([&] { return job("job-a")["most"]["bytes"] == 0; }));
}

TEST(LiveCoordinator, ARenamedAuditIsWrittenAnew) {
  const LiveProxy one;
  const LiveCoordinator site({{"ds1", one.socket()}});
  const std::filesystem::path audit = site.folder() / "audit";
  site.run({"rule", "start", "first", "jobid=a", "weight=2"});
  std::filesystem::rename(audit, site.folder() / "audit.1");
  site.signal(SIGUSR2);
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(audit); }));
  site.run({"rule", "start", "second", "jobid=b", "weight=2"});
  EXPECT_THAT(read_text(audit), AllOf(HasSubstr("rule start second"), Not(HasSubstr("first"))));
  EXPECT_THAT(read_text(site.folder() / "audit.1"), Not(HasSubstr("second")));
}

TEST(LiveCoordinator, SignalsOfOtherProgramsDoNotEndIt) {
  const LiveProxy one;
  const LiveCoordinator site({{"ds1", one.socket()}});
  site.signal(SIGHUP);
  site.signal(SIGUSR1);
  EXPECT_TRUE(comes_true([&] {
    return site.errors().find("SIGHUP: ") != std::string::npos &&
           site.errors().find("SIGUSR1: ") != std::string::npos;
  })) << site.errors();
  site.run({"rule", "start", "first", "jobid=a", "weight=2"});
}

TEST(LiveCoordinator, MetricsTellOfItsStages) {
  const ReservedPort http;
  LiveProxy one;
  const LiveCoordinator site({{"ds1", one.socket()}, {"ds2", "/nowhere/ds2.sock"}}, "",
                             "http: '" + http.address() + "'");
  ASSERT_TRUE(comes_true([&] { return site.stage("ds1")["connected"] == true; }));
  const std::string metrics = http_get(http.number(), "/metrics");
  EXPECT_THAT(metrics, HasSubstr("vpfs_coordinator_stages{state=\"connected\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("vpfs_coordinator_stages{state=\"absent\"} 1"));
  EXPECT_THAT(http_get(http.number(), "/readyz"), HasSubstr("200 OK"));
}

}  // namespace
}  // namespace vpfs::test
