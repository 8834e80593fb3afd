// Metadata operations that are scheduled, and those that are not.

#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/control/raw_peer.h"
#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::Op;

TEST(ProxyMetadata, MetadataPassesUnlessTheConfigurationSchedulesIt) {
  FakeDataServer server;
  const ProxySettings settings = {.upstream = server.port(), .depth = 1};
  ProxyProcess proxy(settings);
  ProxiedLink link = open_link(proxy, server);
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
  ProxiedLink link = open_link(proxy, server);
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
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(getattr_request(1)));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.client.send(getattr_request(2)));
  EXPECT_TRUE(is_error_response(link.client.receive().value(), Op::getattr));
}

TEST(ProxyMetadata, ACoordinatorsLimitHoldsMetadataOperationsAndNoData) {
  const TemporaryDirectory folder;
  const std::string socket = folder.path() / "control.sock";
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(),
                      .scheduler = "schedule: [io, metadata]",
                      .timeouts = "hold: 60 s",
                      .control = fmt::format("socket: {}", socket),
                      .virtual_pfs = "meta: {weight: 1}",
                      .rules = "[{match: {operation: metadata}, virtual_pfs: meta}]"});
  ProxiedLink link = open_link(proxy, server);
  RawPeer coordinator(socket);
  ASSERT_TRUE(coordinator.greet());
  control::Envelope envelope;
  envelope.set_id(1);
  control::Cycle& cycle = *envelope.mutable_cycle();
  cycle.set_term(1);
  cycle.set_sequence(1);
  cycle.set_want_report(true);
  ASSERT_TRUE(coordinator.send(envelope));
  const std::optional<control::Envelope> flows = coordinator.receive();
  ASSERT_TRUE(flows && flows->has_flows());
  ASSERT_TRUE(coordinator.receive());
  cycle.set_complete(true);
  cycle.set_want_report(false);
  cycle.set_lease_us(60'000'000);
  for (const control::Flow& flow : flows->flows().flows()) {
    control::Allocation& allocation = *cycle.add_allocations();
    allocation.set_flow(flow.id());
    allocation.set_metadata_operations_per_second(0);
  }
  const auto apply = [&] {
    cycle.set_sequence(cycle.sequence() + 1);
    envelope.set_id(envelope.id() + 1);
    ASSERT_TRUE(coordinator.send(envelope));
    const std::optional<control::Envelope> report = coordinator.receive();
    ASSERT_TRUE(report && report->report().applied());
  };
  apply();
  ASSERT_TRUE(link.client.send(getattr_request(1)));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  ASSERT_TRUE(link.client.send(io_request(2, {})));
  EXPECT_EQ(link.server.receive().value().bytes(), io_request(2, {}));
  const nlohmann::json held = proxy.status()["virtual_pfs"][1];
  EXPECT_EQ(held["allocated_metadata_operations"], 0);
  EXPECT_EQ(held["oldest_waits_for"], "the coordinator's limit");
  for (control::Allocation& each : *cycle.mutable_allocations()) {
    each.set_metadata_operations_per_second(1000);
  }
  apply();
  EXPECT_EQ(link.server.receive().value().bytes(), getattr_request(1));
}

}  // namespace
}  // namespace vpfs::test
