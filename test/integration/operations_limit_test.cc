// Requests that wait for their rate limit before a real vpfs-proxy, by its own clock.

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/clock/by_clock.h"
#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

constexpr const char* kOneJob = "[{match: {hint: {jobid: a}}, virtual_pfs: a}]";

// Ten requests at 20 per second, on two connections of different workers.
TEST(OperationsLimit, HoldsForAllConnectionsWithoutPolling) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(),
                      .workers = 2,
                      .policy = "tbf",
                      .virtual_pfs = "a: {operations: 20, burst_operations: 1}",
                      .rules = kOneJob});
  std::vector<ProxiedLink> links;
  links.push_back(open_link(proxy, server));
  links.push_back(open_link(proxy, server));
  for (orangefs::Tag tag = 1; tag <= 5; ++tag) {
    for (ProxiedLink& link : links) ASSERT_TRUE(link.client.send(io_request(tag, {.job = "a"})));
  }
  // The order of arrival at the proxy is unknown, so the test receives from each link in turn.
  ASSERT_TRUE(proxy.wait_for_queued(9));
  const nlohmann::json waiting = proxy.status()["virtual_pfs"][1];
  EXPECT_EQ(waiting["oldest_waits_for"], "tokens of its rate limit");
  EXPECT_GT(waiting["oldest_may_go_in_us"], 0) << kByClock;
  EXPECT_LE(waiting["oldest_may_go_in_us"], 50'000) << kByClock;
  EXPECT_EQ(waiting["operations"], 20);

  for (ProxiedLink& link : links) {
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(link.server.receive());
  }
  // Nine intervals of 50 ms by the proxy's clock, and never earlier.
  const auto longest = proxy.status()["virtual_pfs"][1]["wait_us"]["max"].get<std::int64_t>();
  EXPECT_GE(longest, 450'000 - 25'000) << kByClock;  // the requests took a moment to arrive
  EXPECT_LE(longest, 450'000 + 100'000) << "too late even for a busy machine" << kByClock;
  for (ProxiedLink& link : links) link.client.close();
  ASSERT_TRUE(proxy.wait_until_idle());
  const double seconds = proxy.process().stop().cpu().count();
  EXPECT_LT(seconds, 1.0) << "the proxy polls while it waits" << kByClock;
}

}  // namespace
}  // namespace vpfs::test
