// Which requests vpfs-proxy forwards, and when their slots are free again, against a scripted
// server.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::IoType;
using orangefs::Op;

TEST(ProxySlots, ReadEndsAtTheEndOfTheDatafile) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1});
  ProxiedLink link = open_link(proxy, server);
  for (orangefs::Tag tag = 1; tag <= 4; ++tag) {
    ASSERT_TRUE(link.client.send(io_request(tag, {.size = 65536})));
  }
  const auto next_is = [&](orangefs::Tag tag) {
    return link.server.receive().value().bytes() == io_request(tag, {.size = 65536});
  };
  ASSERT_TRUE(next_is(1));
  // The answers: 5000 bytes, then none, then an error.
  const std::vector<Buffer> answers = {
      io_response(1, 5000), data_message(1, Buffer(5000)), io_response(2, 0),
      orangefs::error_message(3, Op::io, orangefs::Status{-1073741829})};
  ASSERT_TRUE(link.server.send(answers[0]));
  EXPECT_EQ(link.client.receive().value().bytes(), answers[0]);
  EXPECT_EQ(proxy.status()["queued"], 3);
  ASSERT_TRUE(link.server.send(answers[1]));
  ASSERT_TRUE(next_is(2));
  ASSERT_TRUE(link.server.send(answers[2]));
  ASSERT_TRUE(next_is(3));
  ASSERT_TRUE(link.server.send(answers[3]));
  ASSERT_TRUE(next_is(4));
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(link.client.receive().value().bytes(), answers[i]);
  }
  const nlohmann::json row = proxy.status()["virtual_pfs"][0];
  EXPECT_EQ(row["done_requests"], 3);
  EXPECT_EQ(row["done_bytes"], 5000);
  EXPECT_EQ(row["failed_requests"], 1);
}

TEST(ProxySlots, WriteEndsWithItsCompletion) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1});
  ProxiedLink link = open_link(proxy, server);
  const Buffer data = data_message(1, StampedFile{.file = 1}.bytes(0, 65536));
  ASSERT_TRUE(link.client.send(io_request(1, {.type = IoType::write, .size = 65536})));
  ASSERT_TRUE(link.client.send(io_request(2, {})));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.server.send(io_response(1, 0)));
  ASSERT_TRUE(link.client.receive());
  ASSERT_TRUE(link.client.send(data));
  EXPECT_EQ(link.server.receive().value().bytes(), data);
  EXPECT_TRUE(proxy.wait_for_queued(1));
  EXPECT_EQ(proxy.status()["outstanding"], 1);
  ASSERT_TRUE(link.server.send(write_completion(1, 65536)));
  EXPECT_EQ(link.server.receive().value().header.tag, 2U);
}

class ProxyWorkers : public ::testing::TestWithParam<unsigned> {};

// Answers `requests` small reads on `servers`, one at a time. Checks that exactly as many are
// outstanding as the depth allows, as long as others wait.
void serve_at_depth(ProxyProcess& proxy, std::span<WirePeer> servers, std::size_t requests,
                    std::size_t depth) {
  std::vector<std::pair<std::size_t, orangefs::Tag>> outstanding;
  for (std::size_t arrived = 0, answered = 0; answered < requests; ++answered) {
    while (outstanding.size() < std::min(depth, requests - answered)) {
      const auto from = first_readable(servers, 10s);
      ASSERT_TRUE(from) << "a slot is free, but no request comes";
      outstanding.emplace_back(*from, servers[*from].receive().value().header.tag);
      ++arrived;
    }
    // The previous answer may still be under way.
    EXPECT_TRUE(proxy.wait_for_outstanding(outstanding.size()));
    EXPECT_EQ(proxy.status()["queued"], requests - arrived);
    EXPECT_FALSE(first_readable(servers, 0ms)) << "more requests than the depth allows";
    // The order of answers is arbitrary.
    const auto [connection, tag] = outstanding[answered * 7 % outstanding.size()];
    std::erase(outstanding, std::pair(connection, tag));
    const Buffer data = StampedFile{.file = connection, .generation = tag}.bytes(0, 4096);
    ASSERT_TRUE(servers[connection].send(small_read_response(tag, data)));
  }
}

TEST_P(ProxyWorkers, DepthHoldsOverAllWorkers) {
  constexpr std::size_t kConnections = 8;
  constexpr std::size_t kEach = 4;
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .workers = GetParam(), .depth = 3});
  std::vector<WirePeer> clients;
  std::vector<WirePeer> servers;
  for (std::size_t i = 0; i < kConnections; ++i) {
    ProxiedLink link = open_link(proxy, server);
    clients.push_back(std::move(link.client));
    servers.push_back(std::move(link.server));
    for (orangefs::Tag tag = 1; tag <= kEach; ++tag) {
      ASSERT_TRUE(clients.back().send(small_read_request(tag, {.size = 4096})));
    }
  }
  ASSERT_TRUE(proxy.wait_for_queued(kConnections * kEach - 3));
  serve_at_depth(proxy, servers, kConnections * kEach, 3);
  for (std::size_t i = 0; i < kConnections; ++i) {
    for (std::size_t answer = 0; answer < kEach; ++answer) {
      const WireMessage message = clients[i].receive().value();
      const Buffer data = StampedFile{.file = i, .generation = message.header.tag}.bytes(0, 4096);
      EXPECT_EQ(message.bytes(), small_read_response(message.header.tag, data));
    }
    clients[i].close();
  }
  EXPECT_TRUE(proxy.wait_until_idle());
}

INSTANTIATE_TEST_SUITE_P(Counts, ProxyWorkers, ::testing::Values(1, 4));

TEST(ProxySlots, TwoHintsShareTwoToOneWithinTheBoundOfSfq) {
  constexpr std::size_t kEach = 200;
  constexpr std::size_t kDepth = 4;
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(),
                      .depth = kDepth,
                      .virtual_pfs = "two: {weight: 2}, one: {weight: 1}",
                      .rules = "[{match: {hint: {jobid: a}}, virtual_pfs: two},"
                               " {match: {hint: {jobid: b}}, virtual_pfs: one}]"});
  ProxiedLink blocker = open_link(proxy, server);
  for (orangefs::Tag tag = 1; tag <= kDepth; ++tag) {
    ASSERT_TRUE(blocker.client.send(io_request(tag, {})));
    ASSERT_TRUE(blocker.server.receive());
  }
  std::vector<WirePeer> clients;
  std::vector<WirePeer> servers;
  for (const char* job : {"a", "b"}) {
    ProxiedLink link = open_link(proxy, server);
    for (orangefs::Tag tag = 1; tag <= kEach; ++tag) {
      ASSERT_TRUE(link.client.send(small_read_request(tag, {.size = 4096, .job = job})));
    }
    clients.push_back(std::move(link.client));
    servers.push_back(std::move(link.server));
  }
  ASSERT_TRUE(proxy.wait_for_queued(2 * kEach));
  for (orangefs::Tag tag = 1; tag <= kDepth; ++tag) {
    ASSERT_TRUE(blocker.server.send(io_response(tag, 0)));
  }
  // Both stay backlogged until one of them has no requests left.
  std::array<int, 2> served = {0, 0};
  for (int total = 0; total < 240; ++total) {
    const auto from = first_readable(servers, 10s);
    ASSERT_TRUE(from);
    const orangefs::Tag tag = servers[*from].receive().value().header.tag;
    ASSERT_TRUE(servers[*from].send(small_read_response(tag, Buffer(4096))));
    ++served[*from];
    // |W_a/2 - W_b/1| <= (D+1)(c/2 + c/1), doubled, in requests of equal size. The request in hand
    // counts as served, so the bound allows one more of each.
    EXPECT_LE(std::abs(served[0] - 2 * served[1]), static_cast<int>(3 * (kDepth + 1) + 3));
  }
  EXPECT_GT(served[0], 140);
}

TEST(ProxySlots, FifoServesInTheOrderOfArrivalWhateverTheWeights) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(),
                      .policy = "fifo",
                      .depth = 1,
                      .virtual_pfs = "much: {weight: 1000}, little: {weight: 1}",
                      .rules = "[{match: {hint: {jobid: much}}, virtual_pfs: much},"
                               " {match: {hint: {jobid: little}}, virtual_pfs: little}]"});
  ProxiedLink one = open_link(proxy, server);
  ProxiedLink two = open_link(proxy, server);
  ASSERT_TRUE(one.client.send(io_request(100, {})));
  ASSERT_TRUE(one.server.receive());
  // Two connections send in turn. Each request has arrived before the next one is sent.
  constexpr orangefs::Tag kRequests = 12;
  for (orangefs::Tag tag = 1; tag <= kRequests; ++tag) {
    ProxiedLink& link = tag % 2 == 0 ? one : two;
    const char* const job = tag % 3 == 0 ? "much" : "little";
    ASSERT_TRUE(link.client.send(small_read_request(tag, {.size = 4096, .job = job})));
    ASSERT_TRUE(proxy.wait_for_queued(tag));
  }
  ASSERT_TRUE(one.server.send(io_response(100, 0)));
  for (orangefs::Tag tag = 1; tag <= kRequests; ++tag) {
    WirePeer& from = tag % 2 == 0 ? one.server : two.server;
    const auto request = from.receive();
    ASSERT_TRUE(request);
    EXPECT_EQ(request->header.tag, tag);
    ASSERT_TRUE(from.send(small_read_response(tag, Buffer(4096))));
  }
}

TEST(ProxySlots, CloseOnEitherSideClosesTheOtherAndFreesTheSlots) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 2});
  for (const bool by_client : {true, false}) {
    ProxiedLink closing = open_link(proxy, server);
    ProxiedLink other = open_link(proxy, server);
    for (orangefs::Tag tag = 1; tag <= 4; ++tag) {
      ASSERT_TRUE(closing.client.send(io_request(tag, {})));
    }
    ASSERT_TRUE(proxy.wait_for_queued(2));
    ASSERT_TRUE(other.client.send(io_request(1, {.size = 777})));
    ASSERT_TRUE(proxy.wait_for_queued(3));
    (by_client ? closing.client : closing.server).close();
    EXPECT_TRUE((by_client ? closing.server : closing.client).closed_by_peer());
    // The slot goes to another connection, which is unharmed.
    EXPECT_EQ(other.server.receive().value().bytes(), io_request(1, {.size = 777}));
    EXPECT_TRUE(proxy.logs(by_client ? "connection closed: closed by the client"
                                     : "connection closed: data server: "));
    ASSERT_TRUE(other.server.send(io_response(1, 0)));
    ASSERT_TRUE(other.client.receive());
    other.client.close();
    EXPECT_TRUE(proxy.wait_until_idle());
  }
}

}  // namespace
}  // namespace vpfs::test
