// On SIGTERM outstanding requests finish, no new one is forwarded, and the proxy exits with 0.

#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::IoType;

bool refuses_connections(std::uint16_t port) {
  try {
    (void)WirePeer::connect(port);
    return false;
  } catch (const std::system_error& error) {
    return error.code() == std::errc::connection_refused;
  }
}

TEST(ProxyDrain, OutstandingRequestsFinishAndNewOnesAreNotForwarded) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1});
  ProxiedLink link = open_link(proxy, server);
  ProxiedLink idle = open_link(proxy, server);
  const Buffer data = data_message(1, StampedFile{.file = 1}.bytes(0, 65536));
  ASSERT_TRUE(link.client.send(io_request(1, {.type = IoType::write})));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.client.send(io_request(2, {})));
  ASSERT_TRUE(proxy.wait_for_queued(1));

  proxy.process().signal(SIGTERM);
  ASSERT_TRUE(proxy.logs("SIGTERM: draining: 1 requests held, 1 at the data server"));
  EXPECT_TRUE(idle.client.closed_by_peer());
  EXPECT_TRUE(refuses_connections(proxy.port()));
  EXPECT_EQ(proxy.status()["draining"], true);
  ASSERT_TRUE(link.client.send(small_read_request(3, {.size = 4096})));

  ASSERT_TRUE(link.server.send(io_response(1, 0)));
  EXPECT_EQ(link.client.receive().value().bytes(), io_response(1, 0));
  ASSERT_TRUE(link.client.send(data));
  EXPECT_EQ(link.server.receive().value().bytes(), data);
  ASSERT_TRUE(link.server.send(write_completion(1, 65536)));
  EXPECT_EQ(link.client.receive().value().bytes(), write_completion(1, 65536));
  // Requests already in the scheduler are served too; later ones are not.
  EXPECT_EQ(link.server.receive().value().bytes(), io_request(2, {}));
  ASSERT_TRUE(link.server.send(io_response(2, 0)));
  EXPECT_EQ(link.client.receive().value().bytes(), io_response(2, 0));
  EXPECT_FALSE(link.server.receive());
  EXPECT_TRUE(link.client.closed_by_peer());
  const auto exit = proxy.process().wait();
  ASSERT_TRUE(exit);
  EXPECT_TRUE(exit->ok());
}

TEST(ProxyDrain, DataThatTheClientHasNotTakenYetStillReachIt) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .timeouts = "client_stall: 1 h"});
  ProxiedLink link = open_link(proxy, server, 4096);
  ASSERT_TRUE(link.client.send(small_read_request(1, {.size = 4096})));
  ASSERT_TRUE(link.server.receive());
  const Buffer message = data_message(5, StampedFile{.file = 3}.bytes(0, 700));
  const std::size_t sent = fill_client_side(proxy, link, message);
  const Buffer answer = small_read_response(1, StampedFile{.file = 1}.bytes(0, 4096));
  ASSERT_TRUE(link.server.send(answer));
  proxy.process().signal(SIGTERM);
  ASSERT_TRUE(proxy.logs("draining"));
  for (std::size_t i = 0; i < sent; ++i) {
    const auto received = link.client.receive(5s);
    ASSERT_TRUE(received) << "message " << i << " of " << sent << " is missing";
    ASSERT_TRUE(received->bytes() == message);
  }
  EXPECT_EQ(link.client.receive().value().bytes(), answer);
  EXPECT_TRUE(link.client.closed_by_peer());
}

TEST(ProxyDrain, EndsInTimeThoughTheDataServerNeverAnswers) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .timeouts = "drain: 200 ms"});
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(io_request(1, {})));
  ASSERT_TRUE(link.server.receive());
  proxy.process().signal(SIGTERM);
  EXPECT_TRUE(link.client.closed_by_peer());
  EXPECT_TRUE(proxy.logs("drain: 1 requests were not finished within 200 ms"));
}

TEST(ProxyDrain, SignalsWhileItEndsDoNotKillIt) {
  FakeDataServer server;
  for (int round = 0; round < 5; ++round) {
    ProxyProcess proxy({.upstream = server.port()});
    Process& process = proxy.process();
    while (process.running()) process.signal(SIGTERM);
    const auto exit = process.wait();
    ASSERT_TRUE(exit);
    EXPECT_TRUE(exit->ok()) << "exit code " << exit->code << ", signal " << exit->signal;
  }
}

}  // namespace
}  // namespace vpfs::test
