// Clients and data servers that vanish, stall or send garbage. Each loses at most its own
// connection, frees its slots, and leaves one line in the log.

#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "test/integration/small_read.h"
#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::IoType;

void expect_idle_after(ProxyProcess& proxy, ProxiedLink& last, std::size_t files_before) {
  last.client.close();
  EXPECT_TRUE(proxy.wait_until_idle());
  // The pool keeps some empty pipes.
  EXPECT_LE(proxy.open_files(), files_before + 8);
}

TEST(ProxyPeerFaults, ClientThatVanishesWithRequestsHeldLeavesNothing) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 2});
  const std::size_t files = proxy.open_files();
  ProxiedLink other = open_link(proxy, server);
  for (const bool reset : {false, true}) {
    ProxiedLink link = open_link(proxy, server);
    for (orangefs::Tag tag = 1; tag <= 50; ++tag) {
      ASSERT_TRUE(link.client.send(small_write_request(tag, {}, Buffer(4096))));
    }
    ASSERT_TRUE(proxy.wait_for_queued(48));
    reset ? link.client.reset() : link.client.close();
    EXPECT_TRUE(link.server.closed_by_peer());
    ASSERT_TRUE(proxy.wait_for_queued(0));
    EXPECT_TRUE(proxy.logs("(48 requests held, 2 at the data server)"));
    expect_works(other, reset ? 2 : 1);
  }
  EXPECT_EQ(proxy.lines_with("(48 requests held, 2 at the data server)"), 2U);
  expect_idle_after(proxy, other, files);
}

// Beyond limits.held_requests the proxy stops reading, so it sees the end only when it reads again.
TEST(ProxyPeerFaults, ClientThatVanishesBeyondTheLimitOfHeldRequestsLeavesNothing) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1, .limits = "held_requests: 4"});
  ProxiedLink other = open_link(proxy, server);
  for (const bool garbage : {false, true}) {
    ASSERT_TRUE(other.client.send(io_request(1, {})));
    ASSERT_TRUE(other.server.receive());
    ProxiedLink link = open_link(proxy, server);
    Buffer burst;
    for (orangefs::Tag tag = 1; tag <= 5; ++tag) {
      const Buffer request = io_request(tag, {});
      burst.insert(burst.end(), request.begin(), request.end());
    }
    if (garbage) burst.resize(burst.size() + 100, std::byte{0x11});
    ASSERT_TRUE(link.client.send(std::span(burst).first(io_request(1, {}).size() * 4)));
    ASSERT_TRUE(proxy.wait_for_queued(4));
    ASSERT_TRUE(link.client.send(std::span(burst).subspan(io_request(1, {}).size() * 4)));
    if (!garbage) link.client.close();
    ASSERT_TRUE(other.server.send(io_response(1, 0)));
    ASSERT_TRUE(other.client.receive());
    // As slots come free, the proxy reads on: first more requests, then the end.
    while (const auto request = link.server.receive()) {
      if (!link.server.send(io_response(request->header.tag, 0))) break;
    }
    expect_works(other, 2);
    expect_works(other, 3);
    EXPECT_TRUE(proxy.wait_for_outstanding(0));
  }
  other.client.close();
  EXPECT_TRUE(proxy.wait_until_idle());
}

TEST(ProxyPeerFaults, ClientThatNeverReadsGivesItsSlotsToOthers) {
  constexpr std::size_t kFlow = 32U << 20;
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1, .timeouts = "client_stall: 200 ms"});
  const std::size_t files = proxy.open_files();
  ProxiedLink other = open_link(proxy, server);
  ProxiedLink link = open_link(proxy, server, 4096);
  const StampedFile file = {.file = 4};
  ASSERT_TRUE(link.client.send(io_request(1, {.size = kFlow})));
  ASSERT_TRUE(link.client.send(io_request(2, {})));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.server.send(io_response(1, kFlow)));
  std::jthread server_sends([&] {
    for (std::size_t at = 0; at < kFlow; at += 262'144) {
      ASSERT_TRUE(link.server.send(data_message(1, file.bytes(at, 262'144))));
    }
  });
  ASSERT_TRUE(other.client.send(small_read_request(1, {.size = 4096})));
  EXPECT_TRUE(proxy.logs("takes no data: 1 of its requests give up their slots"));
  ASSERT_TRUE(other.server.receive());
  ASSERT_TRUE(other.server.send(small_read_response(1, Buffer(4096))));
  ASSERT_TRUE(other.client.receive());
  for (orangefs::Tag tag = 2; tag < 20; ++tag) expect_works(other, tag);
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["counters"]["client_stalls"], 1);
  EXPECT_EQ(now["counters"]["slots_given_up"], 1);
  EXPECT_LT(proxy.memory(), 256U << 20) << "the proxy must not keep the data in memory";

  // When the client reads at last, it gets every byte, and its other request is served.
  EXPECT_EQ(link.client.receive().value().bytes(), io_response(1, kFlow));
  for (std::size_t at = 0; at < kFlow; at += 262'144) {
    ASSERT_EQ(problem_of(link.client.receive().value().payload, file, at), "");
  }
  EXPECT_EQ(link.server.receive().value().bytes(), io_request(2, {}));
  link.client.close();
  expect_idle_after(proxy, other, files);
}

TEST(ProxyPeerFaults, RequestThatTheDataServerNeverAnswersGivesItsSlotBack) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1, .timeouts = "service: 200 ms"});
  ProxiedLink link = open_link(proxy, server);
  ProxiedLink other = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(io_request(1, {.size = 4096})));
  ASSERT_TRUE(link.server.receive());
  expect_works(other, 1);
  EXPECT_TRUE(proxy.logs("1 of its requests made no progress for 200 ms"));
  // A late answer still passes, and is counted.
  const Buffer data = data_message(1, StampedFile{.file = 1}.bytes(0, 4096));
  ASSERT_TRUE(link.server.send(io_response(1, 4096)));
  ASSERT_TRUE(link.server.send(data));
  EXPECT_EQ(link.client.receive().value().bytes(), io_response(1, 4096));
  EXPECT_EQ(link.client.receive().value().bytes(), data);
  expect_works(link, 2);
  EXPECT_TRUE(proxy.wait_until([](const nlohmann::json& now) {
    return now["counters"]["late_bytes"] == 4096 && now["virtual_pfs"][0]["done_requests"] == 3;
  }));
  link.client.close();
  other.client.close();
  EXPECT_TRUE(proxy.wait_until_idle());
}

// Else it would be given up, and the rest of the transfer would cost nothing.
TEST(ProxyPeerFaults, AClientThatStopsInTheMiddleOfATransferLosesItsConnection) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1, .timeouts = "service: 300 ms"});
  ProxiedLink link = open_link(proxy, server);
  ProxiedLink other = open_link(proxy, server);
  ASSERT_TRUE(start_write(link, 1, 1 << 20));
  const Buffer data = data_message(1, Buffer(100'000));
  ASSERT_TRUE(link.client.send(std::span(data).first(50'000)));
  ASSERT_EQ(link.server.receive_bytes(50'000).size(), 50'000U);
  EXPECT_TRUE(link.client.closed_by_peer());
  EXPECT_TRUE(proxy.logs("the client stopped in the middle of a transfer"));
  expect_works(other, 1);
}

TEST(ProxyPeerFaults, AClientThatIsSlowInATransferLosesItsSlotAndIsChargedForAllOfIt) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1, .timeouts = "service: 300 ms"});
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(start_write(link, 1, 1 << 20));
  const Buffer data = data_message(1, Buffer(1 << 20));
  const auto whole = std::span(data);
  std::size_t sent = 0;
  const auto drips = [&] {
    const bool good = link.client.send(whole.subspan(sent, 100));
    sent += 100;
    return good && link.server.receive_bytes(100).size() == 100;
  };
  EXPECT_TRUE(proxy.wait_until([&](const nlohmann::json& now) {
    return drips() && now["counters"]["slots_given_up"] == 1;
  }));
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(50ms);
    ASSERT_TRUE(drips()) << "it goes on for longer than the limit";
  }
  ASSERT_TRUE(link.client.send(whole.subspan(sent)));
  ASSERT_EQ(link.server.receive_bytes(data.size() - sent).size(), data.size() - sent);
  ASSERT_TRUE(link.server.send(write_completion(1, 1 << 20)));
  EXPECT_TRUE(link.client.receive());
  EXPECT_TRUE(proxy.wait_until([](const nlohmann::json& now) {
    return now["virtual_pfs"][0]["done_requests"] == 1 &&
           now["virtual_pfs"][0]["done_bytes"] == 1 << 20;
  }));
  EXPECT_EQ(proxy.status()["virtual_pfs"][0]["given_up_requests"], 1);
}

// timeouts.service applies to I/Os without progress, not to long ones.
TEST(ProxyPeerFaults, SlowFlowKeepsItsSlotAsLongAsItMoves) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1, .timeouts = "service: 400 ms"});
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(io_request(1, {.size = 4096 * 10})));
  ASSERT_TRUE(link.client.send(io_request(2, {})));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.server.send(io_response(1, 4096 * 10)));
  ASSERT_TRUE(link.client.receive());
  for (int part = 0; part < 10; ++part) {
    EXPECT_FALSE(link.server.readable(100ms)) << "part " << part;
    ASSERT_TRUE(link.server.send(data_message(1, Buffer(4096))));
    ASSERT_TRUE(link.client.receive());
  }
  EXPECT_EQ(link.server.receive().value().bytes(), io_request(2, {}));
  EXPECT_EQ(proxy.status()["counters"]["slots_given_up"], 0);
}

TEST(ProxyPeerFaults, DataServerThatClosesInMidMessageEndsThatConnectionOnly) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 2});
  const std::size_t files = proxy.open_files();
  ProxiedLink other = open_link(proxy, server);
  Buffer answer = io_response(1, 1U << 20);
  const Buffer data = data_message(1, StampedFile{.file = 1}.bytes(0, 262'144));
  answer.insert(answer.end(), data.begin(), data.end());
  orangefs::Tag tag = 0;
  // The server closes in the first header, in the response, in the header of the data, in the data,
  // or after them.
  for (const std::size_t size : {std::size_t{10}, std::size_t{30}, io_response(1, 0).size() + 7,
                                 std::size_t{100'000}, answer.size()}) {
    ProxiedLink link = open_link(proxy, server);
    ASSERT_TRUE(link.client.send(io_request(1, {.size = 1U << 20})));
    ASSERT_TRUE(link.client.send(io_request(2, {.size = 1U << 20})));
    ASSERT_TRUE(link.client.send(io_request(3, {.size = 1U << 20})));
    ASSERT_TRUE(link.server.receive());
    ASSERT_TRUE(link.server.send(std::span(answer).first(size)));
    link.server.close();
    // The client got a prefix of what was sent, and not a byte more.
    const Buffer came = link.client.receive_bytes(answer.size());
    ASSERT_LE(came.size(), size);
    EXPECT_TRUE(std::equal(came.begin(), came.end(), answer.begin()));
    expect_works(other, ++tag);
  }
  EXPECT_EQ(proxy.lines_with("vpfs-proxy warning: "), 5U);
  expect_idle_after(proxy, other, files);
}

TEST(ProxyPeerFaults, DataServerThatIsNotThereIsOneLineAndOtherwiseRetried) {
  const ReservedPort port;  // no process listens there, and none can take it
  ProxyProcess proxy({.upstream = port.number()});
  const std::size_t files = proxy.open_files();
  WirePeer refused = proxy.connect();
  EXPECT_TRUE(refused.closed_by_peer());
  EXPECT_TRUE(proxy.logs("data server: connect to 127.0.0.1"));
  EXPECT_EQ(proxy.status()["counters"]["upstream_failures"], 1);
  EXPECT_TRUE(proxy.wait_until_idle());
  EXPECT_LE(proxy.open_files(), files);
}

struct Nonsense {
  const char* name;
  Buffer bytes;
};

Buffer header(std::uint32_t magic, std::uint32_t mode, std::uint64_t size) {
  Buffer bytes;
  for (const auto& [value, width] :
       {std::pair<std::uint64_t, int>{magic, 4}, {mode, 4}, {9, 8}, {size, 8}}) {
    for (int i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  return bytes;
}

std::vector<Nonsense> nonsense(bool from_client) {
  Buffer random(5000);
  std::mt19937_64 engine(11);
  for (std::byte& each : random) each = static_cast<std::byte>(engine());
  std::vector<Nonsense> all = {{"random bytes", random},
                               {"an unknown mode", header(51903, 3, 0)},
                               {"17 MiB", header(51903, 8, 17U << 20)},
                               {"an endless message", header(51903, 8, ~std::uint64_t{0})},
                               {"one wrong byte", Buffer(1, std::byte{0xbe})}};
  if (from_client) {
    all.push_back({"an oversized request", header(51903, 2, 16385)});
  } else {
    all.push_back({"a request from the server", io_request(9, {})});
  }
  return all;
}

TEST(ProxyPeerFaults, NonsenseFromEitherSideEndsThatConnectionWithOneLine) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 2});
  const std::size_t files = proxy.open_files();
  ProxiedLink other = open_link(proxy, server);
  orangefs::Tag tag = 0;
  std::uint64_t errors = 0;
  for (const bool from_client : {true, false}) {
    for (const Nonsense& each : nonsense(from_client)) {
      ProxiedLink link = open_link(proxy, server);
      ASSERT_TRUE(link.client.send(io_request(1, {})));
      ASSERT_TRUE(link.server.receive());
      ASSERT_TRUE((from_client ? link.client : link.server).send(each.bytes));
      EXPECT_TRUE(link.client.closed_by_peer()) << each.name;
      EXPECT_TRUE(link.server.closed_by_peer()) << each.name;
      EXPECT_EQ(proxy.status()["counters"]["framing_errors"], ++errors) << each.name;
      expect_works(other, ++tag);
    }
  }
  EXPECT_EQ(proxy.lines_with("the client sent an invalid message"), 6U);
  EXPECT_EQ(proxy.lines_with("the data server sent an invalid message"), 6U);
  expect_idle_after(proxy, other, files);
}

TEST(ProxyPeerFaults, TagOfAnIoUnderWayUsedAgainEndsThatConnection) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1});
  ProxiedLink other = open_link(proxy, server);
  // The tag of a held request is used by an operation that is not held.
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(io_request(1, {})));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.client.send(io_request(2, {})));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  ASSERT_TRUE(link.client.send(getattr_request(2)));
  EXPECT_TRUE(link.client.closed_by_peer());
  EXPECT_TRUE(link.server.closed_by_peer());
  expect_works(other, 1);
  // The tag of a read is used again while its last data are under way.
  link = open_link(proxy, server);
  const Buffer data = data_message(7, StampedFile{.file = 2}.bytes(0, 100'000));
  ASSERT_TRUE(link.client.send(io_request(7, {.size = 100'000})));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.server.send(io_response(7, 100'000)));
  ASSERT_TRUE(link.server.send(std::span(data).first(50'000)));
  EXPECT_EQ(link.client.receive().value().bytes(), io_response(7, 100'000));
  ASSERT_EQ(link.client.receive_bytes(50'000).size(), 50'000U);
  ASSERT_TRUE(link.client.send(io_request(7, {.size = 4096})));
  EXPECT_TRUE(link.client.closed_by_peer());
  expect_works(other, 2);
  EXPECT_EQ(proxy.status()["counters"]["framing_errors"], 2);
  other.client.close();
  EXPECT_TRUE(proxy.wait_until_idle());
}

TEST(ProxyPeerFaults, MangledRequestsWithSoundFramingPassOrAreHeldOrCloseAndEndWell) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  std::mt19937_64 random(12);
  int closed = 0;
  for (orangefs::Tag tag = 1; tag <= 300; ++tag) {
    Buffer request = io_request(tag, {.size = 100'000, .job = "x"});
    for (int flip = 0; flip < 3; ++flip) {
      request[24 + random() % (request.size() - 24)] = static_cast<std::byte>(random());
    }
    ASSERT_TRUE(link.client.send(request));
    const auto passed = link.server.receive();
    if (!passed) {  // an I/O that cannot be read
      EXPECT_TRUE(link.client.closed_by_peer());
      link = open_link(proxy, server);
      ++closed;
      continue;
    }
    ASSERT_EQ(passed->bytes(), request);
    const Buffer answer =
        orangefs::error_message(tag, orangefs::Op::io, orangefs::Status{-1073741846});
    ASSERT_TRUE(link.server.send(answer));
    ASSERT_EQ(link.client.receive().value().bytes(), answer);
  }
  EXPECT_GT(closed, 10);
  EXPECT_LT(closed, 290);
  EXPECT_TRUE(proxy.wait_for_outstanding(0));
  expect_works(link, 1000);
}

TEST(ProxyPeerFaults, HalfAMessageAndSilenceHoldUpNoOther) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1});
  const std::size_t files = proxy.open_files();
  ProxiedLink other = open_link(proxy, server);
  std::vector<ProxiedLink> halves;
  const Buffer request = io_request(1, {});
  const Buffer data = data_message(2, Buffer(100'000));
  const Buffer other_request = passing_request(2, 10'000);
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{23}, std::size_t{30}, std::size_t{200}}) {
    halves.push_back(open_link(proxy, server));
    ASSERT_TRUE(halves.back().client.send(std::span(request).first(size)));
    halves.push_back(open_link(proxy, server));
    ASSERT_TRUE(halves.back().client.send(std::span(other_request).first(size)));
    halves.push_back(open_link(proxy, server));
    ASSERT_TRUE(halves.back().server.send(std::span(data).first(size)));
  }
  for (orangefs::Tag tag = 1; tag <= 5; ++tag) expect_works(other, tag);
  EXPECT_EQ(proxy.status()["connections"]["open"], halves.size() + 1);
  halves.clear();
  expect_idle_after(proxy, other, files);
}

}  // namespace
}  // namespace vpfs::test
