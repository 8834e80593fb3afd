// Metadata operations that are scheduled, and those that are not.

#include <set>

#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::Op;

TEST(ProxyMetadata, MetadataPassesUnlessTheConfigurationSchedulesIt) {
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

TEST(ProxyMetadata, ScheduledMetadataWaitsForItsSlotAndEndsWithItsAnswer) {
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

TEST(ProxyMetadata, MetadataHeldPastTheDeadlineIsRefusedInItsOwnTerms) {
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
