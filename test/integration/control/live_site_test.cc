// Jobs, identities and several proxies, as vpfsctl and other programs meet them at a real
// vpfs-proxy.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <unistd.h>

#include "test/integration/control/live_proxy.h"
#include "test/support/comes_true.h"
#include "test/support/outcome.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

std::vector<std::string> both(const LiveProxy& one, const LiveProxy& other,
                              std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--proxy", one.socket(), "--proxy", other.socket()});
  return arguments;
}

TEST(LiveSite, ExitCodesTellWhatBecameOfACommandAtTwoProxies) {
  LiveProxy one;
  LiveProxy other;
  EXPECT_EQ(vpfsctl(both(one, other, {"rule", "start", "x", "jobid=a"})).code, 0);
  EXPECT_EQ(vpfsctl(both(one, other, {"rule", "start", "x", "jobid=a"})).code, 1);
  EXPECT_EQ(vpfsctl(both(one, other, {"rule", "start", "x"})).code, 2);
  one.run({"rule", "stop", "x"});
  EXPECT_EQ(vpfsctl(both(one, other, {"rule", "start", "x", "jobid=a"})).code, 4) << "one has it";
  other.proxy().kill();
  EXPECT_EQ(vpfsctl(both(one, other, {"rule", "change", "x", "weight=2"})).code, 4);
  EXPECT_EQ(vpfsctl(both(one, other, {"rule", "stop", "none"})).code, 1) << "refused and down";
  one.proxy().kill();
  EXPECT_EQ(vpfsctl(both(one, other, {"rule", "list"})).code, 3);
  one.proxy().start();
  other.proxy().start();
}

TEST(LiveSite, AtomicMeansEverywhereOrNowhere) {
  LiveProxy one;
  LiveProxy other;
  Outcome outcome = vpfsctl(both(one, other, {"rule", "start", "x", "jobid=a", "--atomic"}));
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(one.rules(), ElementsAre("x", "jobs", "default"));
  EXPECT_THAT(other.rules(), ElementsAre("x", "jobs", "default"));
  EXPECT_EQ(one.data({"rule", "list"})["confirm_by_at"], 0) << "it waits for a confirmation";

  other.run({"rule", "stop", "x"});
  outcome = vpfsctl(both(one, other, {"rule", "change", "x", "weight=9", "--atomic"}));
  EXPECT_EQ(outcome.code, 1) << outcome.errors;
  EXPECT_THAT(one.rule("x")["words"], ElementsAre()) << "the other has no such rule";
  EXPECT_EQ(one.data({"rule", "list"})["confirm_by_at"], 0);

  other.proxy().kill();
  outcome = vpfsctl(both(one, other, {"rule", "stop", "x", "--atomic"}));
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(one.rules(), ElementsAre("x", "jobs", "default"));
  other.proxy().start();
}

TEST(LiveSite, ARegisteredJobGivesItsClientsAnIdentityThatTheWireDoesNotShow) {
  LiveProxy live(16, "", "\njobs: registered");
  ProxiedLink link = live.open();
  live.serve(link, "4711");
  ASSERT_TRUE(live.proxy().wait_for_outstanding(0));
  EXPECT_EQ(live.proxy().status()["counters"]["jobs_not_registered"], 1) << "it was not registered";
  live.run({"job", "start", "4711", "--nodes", "64", "--uid", "1000", "--clients", "127.0.0.1",
            "weight=4"});
  // The wire shows no job id: the one registered job of this client and user has the request. The
  // connection shows its uid, 1000, in a metadata request.
  ASSERT_TRUE(link.client.send(getattr_request(900)));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.server.send(getattr_response(900)));
  ASSERT_TRUE(link.client.receive());
  ASSERT_TRUE(comes_true([&] {
    live.serve(link, "");
    return live.rule("job:4711")["hits"] > 0;
  }));
  const Json who = live.data({"who", "4711"});
  ASSERT_EQ(who["clients"].size(), 1U);
  EXPECT_EQ(who["jobs"][0]["jobid"], "4711");
  EXPECT_EQ(who["jobs"][0]["nodes"], 64);
  // Requeued, on another node.
  live.run({"job", "start", "4711", "--nodes", "64", "--uid", "1000", "--clients", "10.0.0.9"});
  EXPECT_EQ(live.data({"job", "list"})["jobs"].size(), 1U);
  EXPECT_EQ(live.data({"job", "list"})["jobs"][0]["clients"][0], "10.0.0.9");
  live.run({"job", "stop", "4711"});
  EXPECT_EQ(live.data({"job", "list"})["jobs"].size(), 0U);
  EXPECT_EQ(live.ctl({"job", "stop", "4711"}).code, 1);
}

TEST(LiveSite, AJobWithoutAStopEndsByItsTimeLimitAlsoWhileTheProxyIsDown) {
  LiveProxy live;
  live.run({"job", "start", "1", "--nodes", "1", "--uid", "1000", "--clients", "127.0.0.1",
            "--time-limit", "00:00:05"});
  EXPECT_EQ(live.data({"job", "list"})["jobs"].size(), 1U);
  live.proxy().kill();
  std::this_thread::sleep_for(5100ms);
  live.proxy().start();
  EXPECT_EQ(live.data({"job", "list"})["jobs"].size(), 0U);
}

TEST(LiveSite, ClientsAreShownWithWhatTheyHaveShownAndThoseInDefaultAreListed) {
  LiveProxy live;
  ProxiedLink link = live.open();
  ProxiedLink other = live.open();
  live.serve(link, "a");
  live.serve(other, "");
  const Json client = live.data({"who", "127.0.0.1"});
  ASSERT_EQ(client["clients"].size(), 1U);
  EXPECT_EQ(client["clients"][0]["connections"], 2);
  EXPECT_EQ(client["clients"][0]["seen"].size(), 2U);
  const Json job = live.data({"who", "a"});
  ASSERT_EQ(job["clients"].size(), 1U);
  ASSERT_EQ(job["clients"][0]["seen"].size(), 1U);
  EXPECT_EQ(job["clients"][0]["seen"][0]["virtual_pfs"], "job-a");
  EXPECT_EQ(job["clients"][0]["seen"][0]["rule"], "jobs");
  EXPECT_EQ(job["virtual_pfs"][0]["name"], "job-a");
  const Json lost = live.data({"who"});
  ASSERT_EQ(lost["clients"].size(), 1U);
  ASSERT_EQ(lost["clients"][0]["seen"].size(), 1U);
  EXPECT_EQ(lost["clients"][0]["seen"][0]["virtual_pfs"], "default");
  EXPECT_EQ(live.data({"who", "10.0.0.0/8"})["clients"].size(), 0U);
}

// vpfsctl as another user.
Outcome vpfsctl_as(const std::string& uid, const LiveProxy& live,
                   std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"setpriv", "--reuid", uid, "--regid", uid, "--clear-groups",
                                       program("vpfsctl")});
  arguments.insert(arguments.end(), {"--proxy", live.socket()});
  return outcome_of(std::move(arguments));
}

TEST(LiveSite, AUserSeesOwnJobsAndChangesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  LiveProxy live(16, "mode: 0666");
  std::filesystem::permissions(live.directory().path(), std::filesystem::perms::all);
  if (vpfsctl_as("4242", live, {"--version"}).code != 0) {
    GTEST_SKIP() << "another user cannot run vpfsctl here";
  }
  live.run({"job", "start", "his", "--nodes", "1", "--uid", "4242", "--clients", "127.0.0.1"});
  live.run({"job", "start", "hers", "--nodes", "1", "--uid", "4243", "--clients", "127.0.0.2"});
  ProxiedLink link = live.open();
  live.serve(link, "his");
  live.serve(link, "hers");
  const auto data = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--json");
    const Outcome outcome = vpfsctl_as("4242", live, arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
    return Json::parse(outcome.output)["proxies"][0]["data"];
  };
  const Json jobs = data({"job", "list"});
  ASSERT_EQ(jobs["jobs"].size(), 1U);
  EXPECT_EQ(jobs["jobs"][0]["jobid"], "his");
  const Json stat = data({"stat"});
  ASSERT_EQ(stat["virtual_pfs"].size(), 1U);
  EXPECT_EQ(stat["virtual_pfs"][0]["name"], "job-his");
  const Json who = data({"who", "127.0.0.1"});
  ASSERT_EQ(who["clients"].size(), 1U);
  for (const Json& seen : who["clients"][0]["seen"]) EXPECT_EQ(seen["jobid"], "his");
  for (const std::vector<std::string>& change :
       std::vector<std::vector<std::string>>{{"rule", "start", "x", "jobid=his"},
                                             {"bypass", "on"},
                                             {"drain"},
                                             {"reload"},
                                             {"job", "stop", "his"},
                                             {"rule", "list"}}) {
    EXPECT_EQ(vpfsctl_as("4242", live, change).code, 1) << change.front();
  }
  EXPECT_EQ(live.data({"job", "list"})["jobs"].size(), 2U);
}

TEST(LiveSite, MetricsHaveLiveRulesAndReadinessEndsWithADrain) {
  const ReservedPort http;
  LiveProxy live(16, "http: '" + http.address() + "'");
  live.run({"rule", "start", "night", "jobid=a", "weight=4"});
  ProxiedLink link = live.open();
  ASSERT_TRUE(comes_true([&] {
    live.serve(link, "a");
    return live.rule("night")["hits"] > 0;
  }));
  std::this_thread::sleep_for(1100ms);  // a text is kept for a second
  const std::string metrics = http_get(http.number(), "/metrics");
  EXPECT_THAT(metrics, HasSubstr("200 OK"));
  EXPECT_THAT(metrics, HasSubstr("\"night\""));
  EXPECT_THAT(http_get(http.number(), "/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(http_get(http.number(), "/readyz"), HasSubstr("200 OK"));
  live.ask(link, "a");
  const auto held = link.server.receive();
  ASSERT_TRUE(held);
  live.run({"drain"});
  EXPECT_THAT(http_get(http.number(), "/readyz"), HasSubstr("503"));
  EXPECT_THAT(http_get(http.number(), "/healthz"), HasSubstr("200 OK"));
  ASSERT_TRUE(link.server.send(io_response(held->header.tag, 0)));
  ASSERT_TRUE(link.client.receive());
}

// A thousand unknown names. Clients connect and are served meanwhile.
TEST(LiveSite, UnknownHostsOfAJobDelayNoClient) {
  LiveProxy live;
  std::vector<std::string> command = {
      program("vpfsctl"), "--timeout",  "30s",   "job",  "start",     "1",
      "--nodes",          "1000",       "--uid", "1000", "--clients", "n[1-1000].invalid",
      "--proxy",          live.socket()};
  Process start(command);
  std::chrono::nanoseconds longest{};
  while (start.running()) {
    const auto begun = std::chrono::steady_clock::now();
    ProxiedLink link = live.open();
    live.serve(link, "a");
    longest = std::max<std::chrono::nanoseconds>(longest, std::chrono::steady_clock::now() - begun);
  }
  EXPECT_LT(longest, 10s);
  const auto exit = start.wait();
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1) << start.errors();
  EXPECT_EQ(live.data({"job", "list"})["jobs"].size(), 0U);
}

}  // namespace
}  // namespace vpfs::test
