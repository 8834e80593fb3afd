// Requests that are held for too long are refused with an error of the protocol, and never
// forwarded.

#include <map>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::IoType;
using orangefs::Op;

// Passes a GETCONFIG through the proxy, from which it learns the clients' time-out.
void show_client_timeout(ProxiedLink& link, ProxyProcess& proxy, unsigned seconds) {
  ASSERT_TRUE(link.client.send(getconfig_request(1'000)));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.server.send(getconfig_response(1'000, seconds)));
  EXPECT_EQ(link.client.receive().value().bytes(), getconfig_response(1'000, seconds));
  ASSERT_TRUE(proxy.wait_until(
      [&](const nlohmann::json& now) { return now["hold_us"] <= seconds * 800'000; }));
}

TEST(ProxyHold, TakesItsDeadlineFromTheGetconfigThatPasses) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  EXPECT_EQ(proxy.status()["hold_us"], 240'000'000);
  show_client_timeout(link, proxy, 100);
  EXPECT_EQ(proxy.status()["hold_us"], 80'000'000);
  EXPECT_TRUE(proxy.logs("requests are held for 80 s at most"));
}

TEST(ProxyHold, NoTimeoutThatIsLearnedMakesItShorterThanTheLeast) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(getconfig_request(1)));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.server.send(getconfig_response(1, 1)));
  ASSERT_TRUE(link.client.receive());
  EXPECT_TRUE(
      proxy.wait_until([](const nlohmann::json& now) { return now["hold_us"] == 60'000'000; }));
  EXPECT_TRUE(proxy.logs("timeouts: clients give up after 1 s, but hold_min is 1 min"));
}

// The deadline needs a margin below the time-out: a blocked connection may delay a request further.
TEST(ProxyHold, ConfiguredDeadlineIsKeptWellBelowTheTimeoutOfClients) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .timeouts = "hold: 950 ms, hold_min: 100 ms"});
  ProxiedLink link = open_link(proxy, server);
  EXPECT_EQ(proxy.status()["hold_us"], 950'000);
  show_client_timeout(link, proxy, 1);
  EXPECT_EQ(proxy.status()["hold_us"], 800'000);
  EXPECT_TRUE(proxy.logs("timeouts: hold is 950 ms, but clients give up after 1 s"));
}

TEST(ProxyHold, HeldPastTheDeadlineIsRefusedAndNeverForwarded) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1, .timeouts = "hold: 150 ms"});
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(io_request(1, {})));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.client.send(io_request(2, {})));
  ASSERT_TRUE(link.client.send(small_write_request(3, {}, Buffer(4096))));
  EXPECT_TRUE(is_error_response(link.client.receive().value(), Op::io));
  EXPECT_TRUE(is_error_response(link.client.receive().value(), Op::small_io));

  // The slot is free again. The refused requests are still not forwarded; a new one is.
  ASSERT_TRUE(link.server.send(io_response(1, 0)));
  EXPECT_EQ(link.client.receive().value().bytes(), io_response(1, 0));
  ASSERT_TRUE(link.client.send(io_request(4, {})));
  EXPECT_EQ(link.server.receive().value().bytes(), io_request(4, {}));
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["counters"]["requests_refused"], 2);
  EXPECT_EQ(now["virtual_pfs"][0]["refused_requests"], 2);
  EXPECT_EQ(now["virtual_pfs"][0]["done_requests"], 1);
  // One line has both, or each has its own if they were refused at two moments.
  EXPECT_TRUE(proxy.logs("requests refused after they were held for 150 ms: "));
  link.client.close();
  EXPECT_TRUE(proxy.wait_until_idle());
}

TEST(ProxyHold, FarMoreThanTheLimitOfHeldRequestsIsRefusedAtOnce) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1, .limits = "held_requests: 2"});
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(io_request(1, {})));
  ASSERT_TRUE(link.server.receive());
  for (orangefs::Tag tag = 2; tag <= 12; ++tag) ASSERT_TRUE(link.client.send(io_request(tag, {})));
  for (orangefs::Tag tag = 10; tag <= 12; ++tag) {
    const WireMessage answer = link.client.receive().value();
    EXPECT_TRUE(is_error_response(answer, Op::io));
    EXPECT_EQ(answer.header.tag, tag);
  }
  // The other requests are served.
  for (orangefs::Tag tag = 1; tag <= 9; ++tag) {
    ASSERT_TRUE(link.server.send(io_response(tag, 0)));
    EXPECT_EQ(link.client.receive().value().bytes(), io_response(tag, 0));
    if (tag < 9) EXPECT_EQ(link.server.receive().value().bytes(), io_request(tag + 1, {}));
  }
  EXPECT_TRUE(proxy.logs("further ones are refused"));
  link.client.close();
  EXPECT_TRUE(proxy.wait_until_idle());
  EXPECT_EQ(proxy.status()["counters"]["requests_refused"], 3);
}

// Exempt requests take no slot, so no depth bounds them.
TEST(ProxyHold, FarTooManyExemptRequestsAtTheServerAreRefusedToo) {
  constexpr orangefs::Tag kMost = 16'384;
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(),
                      .depth = 1,
                      .rules = "[{name: free, match: 'op=read', exempt: true}]"});
  ProxiedLink link = open_link(proxy, server);
  std::jthread takes([&] {
    for (orangefs::Tag tag = 1; tag <= kMost && link.server.receive(); ++tag) {
    }
  });
  for (orangefs::Tag tag = 1; tag <= kMost + 3; ++tag) {
    ASSERT_TRUE(link.client.send(small_read_request(tag, {.size = 4096})));
  }
  for (orangefs::Tag tag = kMost + 1; tag <= kMost + 3; ++tag) {
    const auto answer = link.client.receive();
    ASSERT_TRUE(answer);
    EXPECT_TRUE(is_error_response(*answer, Op::small_io));
    EXPECT_EQ(answer->header.tag, tag);
  }
  EXPECT_TRUE(proxy.logs("are at the data server: further ones are refused"));
  link.client.close();
  EXPECT_TRUE(proxy.wait_until_idle());
}

// At the deadline a request is either forwarded or refused: never both, and never neither.
TEST(ProxyHold, SlotsThatComeFreeAroundTheDeadlineForwardOrRefuse) {
  constexpr auto kHold = 100ms;
  constexpr orangefs::Tag kEach = 16;
  FakeDataServer server;
  ProxyProcess proxy(
      {.upstream = server.port(), .workers = 3, .depth = kEach, .timeouts = "hold: 100 ms"});
  std::size_t forwarded = 0;
  std::size_t refused = 0;
  for (int round = 0; round < 8; ++round) {
    ProxiedLink busy = open_link(proxy, server);
    ProxiedLink link = open_link(proxy, server);
    for (orangefs::Tag tag = 1; tag <= kEach; ++tag) {
      ASSERT_TRUE(busy.client.send(io_request(tag, {})));
      ASSERT_TRUE(busy.server.receive());
    }
    const auto start = std::chrono::steady_clock::now();
    for (orangefs::Tag tag = 1; tag <= kEach; ++tag) {
      ASSERT_TRUE(link.client.send(small_read_request(tag, {.size = 4096})));
    }
    // Slots come free from shortly before the deadline until after the sweep that enforces it.
    for (orangefs::Tag tag = 1; tag <= kEach; ++tag) {
      std::this_thread::sleep_until(start + kHold - 10ms +
                                    (round + 5 * static_cast<int>(tag)) * 1ms);
      ASSERT_TRUE(busy.server.send(io_response(tag, 0)));
    }
    std::set<orangefs::Tag> answered;
    while (answered.size() < kEach) {
      if (link.server.readable(1ms)) {
        const orangefs::Tag tag = link.server.receive().value().header.tag;
        ASSERT_FALSE(answered.contains(tag)) << "forwarded though it had been refused";
        ASSERT_TRUE(link.server.send(small_read_response(tag, Buffer(4096))));
      }
      if (!link.client.readable(1ms)) continue;
      const WireMessage answer = link.client.receive().value();
      ++(is_error_response(answer, Op::small_io) ? refused : forwarded);
      ASSERT_TRUE(answered.insert(answer.header.tag).second) << "answered twice";
    }
    EXPECT_FALSE(link.server.readable(0ms)) << "forwarded though it had been refused";
  }
  EXPECT_GT(forwarded, 0U);
  EXPECT_GT(refused, 0U);
  EXPECT_TRUE(proxy.wait_until_idle());
  EXPECT_EQ(proxy.status()["counters"]["requests_refused"], refused);
}

// Reads a closing connection to its end and returns the tags of its requests.
std::set<orangefs::Tag> requests_until_the_end(WirePeer& server) {
  std::set<orangefs::Tag> tags;
  while (const auto message = server.receive()) {
    if (operation_of_request(*message) == Op::io) tags.insert(message->header.tag);
  }
  return tags;
}

TEST(ProxyHold, ReleasedRequestIsNotKeptForADataServerThatTakesNothing) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 2, .timeouts = "hold_min: 100 ms"});
  ProxiedLink link = open_link(proxy, server);
  ProxiedLink other = open_link(proxy, server);
  show_client_timeout(link, proxy, 1);
  // Fills the upstream socket until the proxy closes the connection.
  constexpr std::int64_t kEndless = std::int64_t{1} << 40;
  ASSERT_TRUE(start_write(link, 5, kEndless));
  const std::size_t sent = link.client.flood(data_message(5, Buffer(100)), 1'000'000, 60ms);
  ASSERT_GT(sent, 1000U);
  ASSERT_TRUE(proxy.logs("the data server takes no data"));
  EXPECT_TRUE(link.client.closed_by_peer());

  // A request follows what fills the socket, so the proxy has it when it closes the connection.
  ProxiedLink again = open_link(proxy, server);
  ASSERT_TRUE(start_write(again, 5, kEndless));
  const Buffer big = data_message(5, Buffer(16U << 20));
  ASSERT_EQ(again.client.flood(big, 1, 20ms), 1U);
  std::jthread client_sends([&] {
    (void)(again.client.finish_send() && again.client.send(io_request(2, {.size = 4096})));
  });
  EXPECT_TRUE(proxy.wait_until(
      [](const nlohmann::json& now) { return now["counters"]["server_stalls"] == 2; }));
  EXPECT_TRUE(requests_until_the_end(again.server).empty());
  client_sends.join();

  ASSERT_TRUE(other.client.send(io_request(1, {})));
  EXPECT_TRUE(other.server.receive());
  other.client.close();
  EXPECT_TRUE(proxy.wait_until_idle());
}

// A data server that takes nothing for a while keeps its connections from being read, and so from
// being seen to end. A write whose client has gone must not follow what fills them: the client may
// have repeated it on another connection.
TEST(ProxyHold, WriteOfAClientThatHasGoneIsNotReleasedBehindWhatFillsTheConnection) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1});
  ProxiedLink other = open_link(proxy, server);
  for (orangefs::Tag round = 1; round <= 3; ++round) {
    ProxiedLink link = open_link(proxy, server);
    ASSERT_TRUE(other.client.send(io_request(round, {})));
    ASSERT_TRUE(other.server.receive());
    ASSERT_TRUE(link.client.send(
        small_write_request(7, {.type = IoType::write, .size = 4096}, Buffer(4096))));
    ASSERT_TRUE(proxy.wait_for_queued(1));
    // What is read of them ends with a message.
    Buffer all;
    for (orangefs::Tag tag = 100; tag < 1100; ++tag) {
      const Buffer one = passing_request(tag, 16 * 1024 - orangefs::kBmiHeaderSize);
      all.insert(all.end(), one.begin(), one.end());
    }
    ASSERT_EQ(link.client.flood(all, 1, 60ms), 1U);
    link.client.reset();
    // When this is there, the worker has looked since the client went.
    ASSERT_TRUE(other.client.send(getattr_request(100 + round)));
    ASSERT_TRUE(other.server.receive());
    ASSERT_TRUE(other.server.send(io_response(round, 0)));
    ASSERT_TRUE(other.client.receive());
    ASSERT_TRUE(proxy.wait_for_queued(0));
    while (const auto message = link.server.receive()) {
      EXPECT_NE(operation_of_request(*message), Op::small_io) << "it is there after its retry";
    }
  }
  other.client.close();
  EXPECT_TRUE(proxy.wait_until_idle());
  // None of them was sent, so none is charged.
  const nlohmann::json pfs = proxy.status()["virtual_pfs"][0];
  EXPECT_EQ(pfs["done_requests"], 3);
  EXPECT_EQ(pfs["refused_requests"], 0) << "that is what clients were told";
  EXPECT_LT(pfs["cost_done"], pfs["cost_sent"]);
}

// A released request waits for the end of a half-sent message. If the client takes longer than its
// own time-out to send the rest, the request is too late.
TEST(ProxyHold, ReleasedRequestIsNotForwardedLateBehindHalfAMessage) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 2, .timeouts = "hold_min: 100 ms"});
  ProxiedLink link = open_link(proxy, server);
  ProxiedLink other = open_link(proxy, server);
  show_client_timeout(link, proxy, 1);
  ASSERT_TRUE(other.client.send(io_request(1, {})));
  ASSERT_TRUE(other.server.receive());
  ASSERT_TRUE(link.client.send(io_request(1, {.type = IoType::write, .size = 65536})));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.server.send(io_response(1, 0)));
  ASSERT_TRUE(link.client.receive());
  const auto sent = std::chrono::steady_clock::now();
  ASSERT_TRUE(link.client.send(io_request(2, {})));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  const Buffer data = data_message(1, StampedFile{.file = 1}.bytes(0, 65536));
  ASSERT_TRUE(link.client.send(std::span(data).first(1000)));
  ASSERT_EQ(link.server.receive_bytes(1000).size(), 1000U);
  ASSERT_TRUE(other.server.send(io_response(1, 0)));
  ASSERT_TRUE(proxy.wait_for_queued(0));

  std::this_thread::sleep_until(sent + 1s);
  (void)link.client.send(std::span(data).subspan(1000));
  link.client.close();
  (void)link.server.receive_bytes(data.size() - 1000);
  EXPECT_TRUE(requests_until_the_end(link.server).empty());
  other.client.close();
  EXPECT_TRUE(proxy.wait_until_idle());
}

}  // namespace
}  // namespace vpfs::test
