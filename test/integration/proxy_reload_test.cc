// What SIGHUP changes, and what it does not, while requests are held and outstanding.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::Op;

constexpr const char* kRulesByHint =
    "[{match: {hint: {jobid: a}}, virtual_pfs: a}, {match: {hint: {jobid: b}}, virtual_pfs: b}]";

class ProxyReload : public ::testing::Test {
 protected:
  [[nodiscard]] ProxySettings settings(const std::string& policy, unsigned depth,
                                       const std::string& virtual_pfs) const {
    return {.upstream = server_.port(),
            .workers = 2,
            .policy = policy,
            .depth = depth,
            .virtual_pfs = virtual_pfs,
            .rules = kRulesByHint};
  }
  static IoSpec job(const std::string& name) { return {.size = 65536, .job = name}; }
  static void ask(ProxiedLink& link, orangefs::Tag tag, const std::string& name) {
    ASSERT_TRUE(link.client.send(io_request(tag, job(name))));
  }
  // The server receives the request and answers that there is nothing to read.
  static void serve(ProxiedLink& link, orangefs::Tag tag, const std::string& name) {
    ASSERT_EQ(link.server.receive().value().bytes(), io_request(tag, job(name)));
    finish(link, tag);
  }
  static void finish(ProxiedLink& link, orangefs::Tag tag) {
    ASSERT_TRUE(link.server.send(io_response(tag, 0)));
    ASSERT_EQ(link.client.receive().value().bytes(), io_response(tag, 0));
  }

  FakeDataServer server_;
};

TEST_F(ProxyReload, WeightsChangeWithoutTouchingAConnection) {
  ProxyProcess proxy(settings("sfq", 1, "a: {weight: 1}, b: {weight: 1}"));
  ProxiedLink link = open_link(proxy, server_);
  proxy.reload(settings("sfq", 1, "a: {weight: 3}, b: {weight: 1}"));
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["reloads"]["failed"], 0);
  EXPECT_EQ(now["virtual_pfs"][1]["weight"], 3);
  ask(link, 1, "a");
  serve(link, 1, "a");  // over the connection that was there
  // The client may have its answer before the proxy has counted it.
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  EXPECT_EQ(proxy.status()["virtual_pfs"][1]["done_requests"], 1);
}

// Changes through all policies while one request is outstanding and others wait.
TEST_F(ProxyReload, AnotherPolicyTakesOverWhatWaitsAndWhatIsOutstanding) {
  ProxyProcess proxy(settings("fifo", 1, "a: {weight: 1}, b: {weight: 1}"));
  ProxiedLink link = open_link(proxy, server_);
  orangefs::Tag tag = 1;
  for (const std::string policy : {"sfq", "tbf", "adaptbf", "edf", "fifo"}) {
    ask(link, tag, "a");
    ASSERT_EQ(link.server.receive().value().bytes(), io_request(tag, job("a")));
    ask(link, tag + 1, "b");
    ask(link, tag + 2, "a");
    ASSERT_TRUE(proxy.wait_for_queued(2));
    proxy.reload(settings(policy, 1, "a: {weight: 1}, b: {weight: 1}"));
    const nlohmann::json now = proxy.status();
    EXPECT_EQ(now["policy"], policy);
    EXPECT_EQ(now["queued"], 2);
    EXPECT_EQ(now["outstanding"], 1) << "requests that the old policy sent count against the depth";
    EXPECT_EQ(now["virtual_pfs"][1]["outstanding_requests"], 1);
    finish(link, tag);
    serve(link, tag + 1, "b");
    serve(link, tag + 2, "a");
    ASSERT_TRUE(proxy.wait_for_outstanding(0));
    tag += 3;
  }
  EXPECT_EQ(proxy.status()["virtual_pfs"][1]["done_requests"], 10);
  EXPECT_EQ(proxy.status()["virtual_pfs"][2]["done_requests"], 5);
}

TEST_F(ProxyReload, ADeeperDepthLetsWaitingRequestsGoAtOnce) {
  ProxyProcess proxy(settings("sfq", 1, "a: {weight: 1}, b: {weight: 1}"));
  ProxiedLink link = open_link(proxy, server_);
  for (orangefs::Tag tag = 1; tag <= 3; ++tag) ask(link, tag, "a");
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(proxy.wait_for_queued(2));
  proxy.reload(settings("sfq", 3, "a: {weight: 1}, b: {weight: 1}"));
  EXPECT_TRUE(link.server.receive());
  EXPECT_TRUE(link.server.receive());
}

TEST_F(ProxyReload, ABadFileChangesNothingAndSaysWhy) {
  ProxyProcess proxy(settings("sfq", 1, "a: {weight: 1}, b: {weight: 1}"));
  ProxiedLink link = open_link(proxy, server_);
  proxy.reload(settings("sfq", 1, "a: {weight: 0}, b: {weight: 1}"));
  nlohmann::json now = proxy.status();
  EXPECT_EQ(now["reloads"]["failed"], 1);
  EXPECT_EQ(now["virtual_pfs"][1]["weight"], 1);
  EXPECT_TRUE(proxy.logs("proxy.yaml:6: virtual_pfs.a.weight: "));
  EXPECT_NE(now["reloads"]["last_error"].get<std::string>().find("virtual_pfs.a.weight"),
            std::string::npos);

  ProxySettings other_upstream = settings("sfq", 1, "a: {weight: 2}, b: {weight: 1}");
  other_upstream.upstream = 1;
  proxy.reload(other_upstream);
  now = proxy.status();
  EXPECT_EQ(now["reloads"]["failed"], 2);
  EXPECT_EQ(now["virtual_pfs"][1]["weight"], 1);
  EXPECT_TRUE(proxy.logs("proxy.upstream: cannot change while the proxy runs"));

  proxy.reload(settings("sfq", 1, "a: {weight: 2}, b: {weight: 1}"));
  now = proxy.status();
  EXPECT_EQ(now["virtual_pfs"][1]["weight"], 2);
  EXPECT_FALSE(now["reloads"].contains("last_error"));
  ask(link, 1, "a");
  serve(link, 1, "a");
}

TEST_F(ProxyReload, RulesChangeForConnectionsThatAreThere) {
  ProxyProcess proxy(settings("sfq", 1, "a: {weight: 1}, b: {weight: 1}"));
  ProxiedLink link = open_link(proxy, server_);
  ask(link, 1, "a");
  serve(link, 1, "a");
  ProxySettings swapped = settings("sfq", 1, "b: {weight: 1}, c: {weight: 5}");
  swapped.rules = "[{match: {hint: {jobid: a}}, virtual_pfs: c}]";
  proxy.reload(swapped);
  // Workers use the new rules from their next event on.
  orangefs::Tag tag = 2;
  EXPECT_TRUE(proxy.wait_until([&](const nlohmann::json& now) {
    ask(link, tag, "a");
    serve(link, tag++, "a");
    return now["virtual_pfs"][3]["name"] == "c" && now["virtual_pfs"][3]["done_requests"] > 0;
  }));
  EXPECT_EQ(proxy.status()["virtual_pfs"][1]["removed"], true);
}

TEST_F(ProxyReload, AConnectionThatWasIdleMeanwhileFollowsTheNewRulesWithItsFirstRequest) {
  ProxyProcess proxy(settings("sfq", 1, "a: {weight: 1}, b: {weight: 1}"));
  std::vector<ProxiedLink> links;
  for (orangefs::Tag tag = 1; tag <= 4; ++tag) {
    links.push_back(open_link(proxy, server_));
    ask(links.back(), tag, "a");
    serve(links.back(), tag, "a");
  }
  ASSERT_TRUE(proxy.wait_until(
      [](const nlohmann::json& now) { return now["virtual_pfs"][1]["done_requests"] == 4; }));
  for (const std::string owner : {"b", "a", "default"}) {
    ProxySettings other = settings("sfq", 1, "a: {weight: 1}, b: {weight: 1}");
    other.rules = "[{match: {hint: {jobid: a}}, virtual_pfs: " + owner + "}]";
    proxy.reload(other);
    for (ProxiedLink& link : links) {
      ask(link, 7, "a");
      serve(link, 7, "a");
    }
    ASSERT_TRUE(proxy.wait_for_outstanding(0));
  }
  // The proxy counts a request a moment after its client has the answer.
  const auto done = [](const nlohmann::json& now) {
    int sum = 0;
    for (const nlohmann::json& each : now["virtual_pfs"]) sum += each["done_requests"].get<int>();
    return sum;
  };
  EXPECT_TRUE(proxy.wait_until([&](const nlohmann::json& now) { return done(now) == 16; }));
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["virtual_pfs"][0]["done_requests"], 4);
  EXPECT_EQ(now["virtual_pfs"][1]["done_requests"], 8);
  EXPECT_EQ(now["virtual_pfs"][2]["done_requests"], 4);
}

TEST_F(ProxyReload, PromisesThatDoNotFitAreRefusedWithWhatWould) {
  ProxySettings good = settings("edf", 1, "a: {latency: 50 ms, rate: 10 MiB/s}, b: {weight: 1}");
  good.scheduler = "edf: {capacity: 100 MiB/s, largest_request: 1 MiB}";
  ProxyProcess proxy(good);
  EXPECT_EQ(proxy.status()["virtual_pfs"][1]["promised"], true);
  ProxySettings bad = good;
  bad.virtual_pfs = "a: {latency: 50 ms, rate: 10 MiB/s}, b: {latency: 51 ms, rate: 10 MiB/s}";
  proxy.reload(bad);
  EXPECT_EQ(proxy.status()["reloads"]["failed"], 1);
  EXPECT_TRUE(proxy.logs("virtual_pfs.b.latency: cannot be promised: the earliest that can is"));
}

// The two new promises fit together, but neither fits beside the other's old one.
TEST_F(ProxyReload, PromisesThatFitTogetherReplaceOthersInAnyOrder) {
  const auto promises = [this](int a, int b) {
    ProxySettings made = settings(
        "edf", 1,
        "a: {latency: 100 ms, burst: 64 KiB, rate: " + std::to_string(a) +
            " MiB/s}, b: {latency: 100 ms, burst: 64 KiB, rate: " + std::to_string(b) + " MiB/s}");
    made.scheduler = "edf: {capacity: 100 MiB/s, largest_request: 64 KiB}";
    return made;
  };
  ProxyProcess proxy(promises(60, 30));
  for (const auto& [a, b] : {std::pair{80, 10}, std::pair{10, 80}, std::pair{50, 50}}) {
    proxy.reload(promises(a, b));
    const nlohmann::json now = proxy.status();
    EXPECT_EQ(now["reloads"]["failed"], 0);
    EXPECT_EQ(now["virtual_pfs"][1]["promised"], true) << a << " and " << b;
    EXPECT_EQ(now["virtual_pfs"][2]["promised"], true) << a << " and " << b;
  }
}

TEST_F(ProxyReload, MetadataIsScheduledOnConnectionsThatCarryNothingElse) {
  ProxySettings with = settings("sfq", 1, "a: {weight: 1}, b: {weight: 1}");
  ProxyProcess proxy(with);
  ProxiedLink link = open_link(proxy, server_);
  ASSERT_TRUE(link.client.send(getattr_request(1)));
  ASSERT_TRUE(link.server.receive());
  with.scheduler = "schedule: [io, metadata]";
  proxy.reload(with);
  orangefs::Tag tag = 2;
  EXPECT_TRUE(proxy.wait_until([&](const nlohmann::json& now) {
    EXPECT_TRUE(link.client.send(getattr_request(tag)));
    EXPECT_TRUE(link.server.receive());
    EXPECT_TRUE(link.server.send(getattr_response(tag++)));
    EXPECT_TRUE(link.client.receive());
    return now["virtual_pfs"][0]["done_requests"] > 0;
  }));
}

TEST_F(ProxyReload, AConnectionThatWasIdleMeanwhileHasItsFirstMetadataRequestHeld) {
  ProxySettings with = settings("sfq", 1, "a: {weight: 1}, b: {weight: 1}");
  ProxyProcess proxy(with);
  ProxiedLink busy = open_link(proxy, server_);
  ProxiedLink idle = open_link(proxy, server_);
  ASSERT_TRUE(idle.client.send(getattr_request(1)));
  ASSERT_TRUE(idle.server.receive());
  ASSERT_TRUE(idle.server.send(getattr_response(1)));
  ASSERT_TRUE(idle.client.receive());
  ask(busy, 1, "a");
  ASSERT_TRUE(busy.server.receive());
  with.scheduler = "schedule: [io, metadata]";
  proxy.reload(with);
  ASSERT_TRUE(idle.client.send(getattr_request(2)));
  ASSERT_TRUE(proxy.wait_for_queued(1)) << "the only slot is taken";
  finish(busy, 1);
  ASSERT_EQ(idle.server.receive().value().bytes(), getattr_request(2));
}

}  // namespace
}  // namespace vpfs::test
