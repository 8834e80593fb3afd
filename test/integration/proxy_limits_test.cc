// Requests that wait for their rate limit, and metadata operations that are scheduled.

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::Op;

constexpr const char* kOneJob = "[{match: {hint: {jobid: a}}, virtual_pfs: a}]";

// Ten requests at 20 per second, on two connections of different workers.
TEST(ProxyLimits, ALimitHoldsForAllConnectionsToTheMillisecondWithoutPolling) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(),
                      .workers = 2,
                      .policy = "tbf",
                      .virtual_pfs = "a: {operations: 20, burst_operations: 1}",
                      .rules = kOneJob});
  std::vector<Link> links;
  links.push_back(open_link(proxy, server));
  links.push_back(open_link(proxy, server));
  for (orangefs::Tag tag = 1; tag <= 5; ++tag) {
    for (Link& link : links) ASSERT_TRUE(link.client.send(io_request(tag, {.job = "a"})));
  }
  // The order of arrival at the proxy is unknown, so the test receives from each link in turn.
  ASSERT_TRUE(proxy.wait_for_queued(9));
  const nlohmann::json waiting = proxy.status()["virtual_pfs"][1];
  EXPECT_EQ(waiting["oldest_waits_for"], "tokens of its rate limit");
  EXPECT_GT(waiting["oldest_may_go_in_us"], 0);
  EXPECT_LE(waiting["oldest_may_go_in_us"], 50'000);
  EXPECT_EQ(waiting["operations"], 20);

  for (Link& link : links) {
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(link.server.receive());
  }
  // Nine intervals of 50 ms by the proxy's clock, and never earlier.
  const auto longest = proxy.status()["virtual_pfs"][1]["wait_us"]["max"].get<std::int64_t>();
  EXPECT_GE(longest, 450'000 - 25'000);  // the requests took a moment to arrive
  EXPECT_LE(longest, 450'000 + 100'000) << "too late even for a busy machine";
  for (Link& link : links) link.client.close();
  ASSERT_TRUE(proxy.wait_until_idle());
  const double seconds = proxy.process().stop().cpu().count();
  EXPECT_LT(seconds, 1.0) << "the proxy polls while it waits";
}

TEST(ProxyLimits, MetadataPassesUnlessTheConfigurationSchedulesIt) {
  FakeDataServer server;
  const ProxySettings settings = {.upstream = server.port(), .depth = 1};
  ProxyProcess proxy(settings);
  Link link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(io_request(1, {})));
  ASSERT_TRUE(link.client.send(getattr_request(2)));
  // Either order is right: only I/O goes through the scheduler.
  const std::multiset<Buffer> received = {link.server.receive().value().bytes(),
                                          link.server.receive().value().bytes()};
  EXPECT_EQ(received, (std::multiset<Buffer>{io_request(1, {}), getattr_request(2)}));
  EXPECT_EQ(proxy.status()["outstanding"], 1);
}

TEST(ProxyLimits, ScheduledMetadataWaitsForItsSlotAndEndsWithItsAnswer) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(),
                      .depth = 1,
                      .scheduler = "schedule: [io, metadata]",
                      .virtual_pfs = "meta: {weight: 1}",
                      .rules = "[{match: {operation: metadata}, virtual_pfs: meta}]"});
  Link link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(getattr_request(1)));
  ASSERT_EQ(link.server.receive().value().bytes(), getattr_request(1));
  ASSERT_TRUE(link.client.send(getattr_request(2)));
  ASSERT_TRUE(link.client.send(io_request(3, {})));
  ASSERT_TRUE(proxy.wait_for_queued(2));
  ASSERT_TRUE(link.server.send(getattr_response(1)));
  EXPECT_EQ(link.client.receive().value().bytes(), getattr_response(1));
  // `default` has had nothing so far, so its turn is next.
  ASSERT_EQ(link.server.receive().value().bytes(), io_request(3, {}));
  ASSERT_TRUE(link.server.send(io_response(3, 0)));
  ASSERT_TRUE(link.client.receive());
  ASSERT_EQ(link.server.receive().value().bytes(), getattr_request(2));
  ASSERT_TRUE(
      link.server.send(orangefs::error_message(2, Op::getattr, orangefs::Status{-1073741826})));
  ASSERT_TRUE(link.client.receive());
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  const nlohmann::json row = proxy.status()["virtual_pfs"][1];
  EXPECT_EQ(row["done_requests"], 2);
  EXPECT_EQ(row["failed_requests"], 1);
  // The GETCONFIG of a mount is never held.
  ASSERT_TRUE(link.client.send(getconfig_request(4)));
  EXPECT_TRUE(link.server.receive());
}

TEST(ProxyLimits, MetadataHeldPastTheDeadlineIsRefusedInItsOwnTerms) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(),
                      .depth = 1,
                      .scheduler = "schedule: [io, metadata]",
                      .timeouts = "hold: 150 ms"});
  Link link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(getattr_request(1)));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.client.send(getattr_request(2)));
  EXPECT_TRUE(is_error_response(link.client.receive().value(), Op::getattr));
}

}  // namespace
}  // namespace vpfs::test
