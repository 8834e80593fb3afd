// The proxy in front of a BeeGFS storage server that the test plays.

#include "test/support/servers/proxy_beegfs.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace vpfs::test {
namespace {

using beegfs::kWriteMirrored;
using beegfs::kWriteToMirror;
using beegfs::make_message;
using beegfs::MessageType;

TEST_F(ProxyBeegfs, AMessageReachesTheServerInOnePieceOrNotAtAll) {
  ProxyProcess proxy(settings(4));
  ProxiedLink link = open(proxy);
  Buffer stat(2);
  const Buffer unscheduled = make_message({.type = MessageType::stat_storage_path}, stat);
  for (const Buffer& message : {read_request(), unscheduled}) {
    for (std::size_t sent = 0; sent + 1 < message.size(); ++sent) {
      ASSERT_TRUE(link.client.send(std::span(message).subspan(sent, 1)));
      if (sent % 39 == 0) {
        ASSERT_FALSE(link.server.readable(milliseconds(10))) << sent;
      }
    }
    ASSERT_TRUE(link.client.send(std::span(message).last(1)));
    ASSERT_EQ(link.server.receive_bytes(message.size()), message);
    answer(link, message == unscheduled
                     ? make_message({.type = MessageType::stat_storage_path_resp}, Buffer(36))
                     : read_answer(pattern(kSmall, 1)));
  }
}

TEST_F(ProxyBeegfs, ReadsAndWritesOfAllSizesArriveUnchanged) {
  ProxyProcess proxy(settings(4));
  ProxiedLink link = open(proxy);
  unsigned seed = 0;
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{49'000},
                                 std::size_t{524'288}, std::size_t{5'000'001}}) {
    const Buffer data = pattern(size, ++seed);
    const Buffer write = write_request(1001, size);
    std::thread sender([&] { EXPECT_TRUE(link.client.send(write + data)); });
    EXPECT_EQ(link.server.receive_bytes(write.size() + size), write + data);
    sender.join();
    answer(link, beegfs::write_answer(static_cast<std::int64_t>(size)));

    const Buffer read = read_request(1001, size);
    ASSERT_TRUE(link.client.send(read));
    ASSERT_EQ(link.server.receive_bytes(read.size()), read);
    Buffer pieces;
    for (std::size_t at = 0; at < size; at += 131'072) {
      const std::size_t piece = std::min<std::size_t>(131'072, size - at);
      pieces = pieces + word(static_cast<std::int64_t>(piece));
      pieces.insert(pieces.end(), data.begin() + static_cast<std::ptrdiff_t>(at),
                    data.begin() + static_cast<std::ptrdiff_t>(at + piece));
    }
    pieces = pieces + word(0);
    std::thread server([&] { EXPECT_TRUE(link.server.send(pieces)); });
    EXPECT_EQ(link.client.receive_bytes(pieces.size()), pieces);
    server.join();
  }
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  EXPECT_EQ(proxy.status()["virtual_pfs"][1]["done_requests"], 10);
  EXPECT_EQ(proxy.status()["virtual_pfs"][1]["failed_requests"], 0);
}

TEST_F(ProxyBeegfs, AHeldWriteIsItsHeaderAndItsDataStayInTheSocket) {
  ProxyProcess proxy(settings());
  ProxiedLink first = open(proxy);
  occupy(first);
  ProxiedLink second = open(proxy);
  const std::size_t size = std::size_t{32} << 20;
  const Buffer write = write_request(1002, size);
  const Buffer data = pattern(size, 5);
  const std::size_t before = proxy.own_memory();
  std::thread sender([&] { EXPECT_TRUE(second.client.send(write + data)); });
  ASSERT_TRUE(proxy.wait_for_queued(1));
  EXPECT_FALSE(second.server.readable(kQuiet));
  EXPECT_LT(proxy.own_memory(), before + (std::size_t{4} << 20));
  EXPECT_EQ(proxy.status()["counters"]["client_stalls"], 0);
  answer(first, read_answer(pattern(kSmall, 1)));
  EXPECT_EQ(second.server.receive_bytes(write.size() + size), write + data);
  sender.join();
  answer(second, beegfs::write_answer(static_cast<std::int64_t>(size)));
}

// Even if a client sends two requests at once, a connection has one at a time at the server.
TEST_F(ProxyBeegfs, RequestsThatAreSentTogetherGoOneAfterTheOther) {
  ProxyProcess proxy(settings(4));
  ProxiedLink link = open(proxy);
  const Buffer read = read_request();
  const Buffer write = write_request();
  const Buffer data = pattern(kSmall, 2);
  ASSERT_TRUE(link.client.send(read + write + data + read));
  ASSERT_EQ(link.server.receive_bytes(read.size()), read);
  EXPECT_FALSE(link.server.readable(kQuiet));
  answer(link, read_answer(data));
  ASSERT_EQ(link.server.receive_bytes(write.size() + data.size()), write + data);
  EXPECT_FALSE(link.server.readable(kQuiet));
  answer(link, beegfs::write_answer(kSmall));
  expect_served(link, read);
}

TEST_F(ProxyBeegfs, WhatIsHeldForTooLongIsAnsweredSoThatItsClientComesAgain) {
  ProxySettings short_hold = settings();
  short_hold.timeouts = "hold: 200 ms";
  ProxyProcess proxy(short_hold);
  ProxiedLink first = open(proxy);
  occupy(first);
  ProxiedLink reader = open(proxy);
  ProxiedLink writer = open(proxy);
  const std::size_t size = 3'000'000;
  ASSERT_TRUE(reader.client.send(read_request(1002)));
  std::thread sender(
      [&] { EXPECT_TRUE(writer.client.send(write_request(1002, size) + pattern(size, 1))); });
  EXPECT_EQ(reader.client.receive_bytes(8), word(-3));
  EXPECT_EQ(writer.client.receive_bytes(48), beegfs::write_answer(-22));
  sender.join();
  EXPECT_EQ(proxy.status()["counters"]["requests_refused"], 2);
  answer(first, read_answer(pattern(kSmall, 1)));
  // Nothing of the refused requests was forwarded, and both connections still work.
  for (ProxiedLink* link : {&reader, &writer}) {
    EXPECT_FALSE(link->server.readable(milliseconds(20)));
    ASSERT_TRUE(link->client.send(read_request()));
    expect_served(*link, read_request());
  }
}

TEST_F(ProxyBeegfs, TheWorkOfAClientThatHasGoneIsDropped) {
  ProxyProcess proxy(settings());
  ProxiedLink first = open(proxy);
  occupy(first);
  ProxiedLink reader = open(proxy);
  ProxiedLink writer = open(proxy);
  ASSERT_TRUE(reader.client.send(read_request()));
  ASSERT_TRUE(writer.client.send(write_request(1001, 100'000) + pattern(100'000, 1)));
  ASSERT_TRUE(proxy.wait_for_queued(2));
  reader.client.close();
  writer.client.close();
  EXPECT_TRUE(proxy.wait_for_queued(0));
  EXPECT_TRUE(reader.server.closed_by_peer());
  EXPECT_TRUE(writer.server.closed_by_peer());
  answer(first, read_answer(pattern(kSmall, 1)));
  first.client.close();
  EXPECT_TRUE(proxy.wait_until_idle());
}

// An abandoned write must not arrive after its retry on another connection.
TEST_F(ProxyBeegfs, AWriteWhoseClientHasGoneIsNotPassedOnLate) {
  ProxyProcess proxy(settings());
  ProxiedLink first = open(proxy);
  occupy(first);
  for (const bool with_reset : {true, false}) {
    for (int round = 0; round < 5; ++round) {
      ProxiedLink second = open(proxy);
      ASSERT_TRUE(second.client.send(write_request() + pattern(kSmall, 1)));
      // Requests held for less are forwarded without checking for a hang-up.
      ASSERT_TRUE(proxy.wait_until([](const auto& now) {
        return now["queued"] == 1 && now["virtual_pfs"][1]["oldest_waits_us"] >= 1000;
      }));
      with_reset ? second.client.reset() : second.client.close();
      answer(first, read_answer(pattern(kSmall, 3)));
      EXPECT_EQ(second.server.receive_bytes(1), Buffer()) << "round " << round;
      occupy(first);
    }
  }
  answer(first, read_answer(pattern(kSmall, 3)));
  EXPECT_TRUE(proxy.wait_until([](const auto& now) { return now["outstanding"] == 0; }));
}

TEST_F(ProxyBeegfs, ADrainLetsEverythingEndThatHasBegun) {
  ProxySettings with_servers = settings(4);
  with_servers.proxy = "servers: 127.0.0.1";
  ProxyProcess proxy(with_servers);
  ProxiedLink writer = open(proxy);
  ProxiedLink meta = open(proxy, 1, beegfs::NodeType::meta);
  ProxiedLink primary = open_link(proxy, server_);
  ProxiedLink idle = open(proxy);
  const std::size_t size = 2'000'000;
  const Buffer write = write_request(1001, size);
  const Buffer data = pattern(size, 9);
  const Buffer unlink = make_message({.type = MessageType::unlink_local_file}, Buffer(30));
  ASSERT_TRUE(meta.client.send(unlink));
  ASSERT_EQ(meta.server.receive_bytes(unlink.size()), unlink);
  const Buffer forwarded = request({.type = MessageType::write_local_file,
                                    .count = 100,
                                    .flags = kWriteMirrored | kWriteToMirror});
  ASSERT_TRUE(primary.client.send(forwarded));
  ASSERT_EQ(primary.server.receive_bytes(forwarded.size()), forwarded);
  ASSERT_TRUE(writer.client.send(write + Buffer(data.begin(), data.begin() + 1000)));
  ASSERT_EQ(writer.server.receive_bytes(write.size()), write);
  proxy.process().signal(SIGTERM);
  EXPECT_TRUE(idle.client.closed_by_peer());
  const Buffer rest(data.begin() + 1000, data.end());
  std::thread sender([&] { EXPECT_TRUE(writer.client.send(rest)); });
  EXPECT_EQ(writer.server.receive_bytes(size), data);
  sender.join();
  answer(writer, beegfs::write_answer(size));
  answer(meta, make_message({.type = MessageType::unlink_local_file_resp}, Buffer(4)));
  ASSERT_TRUE(primary.client.send(pattern(100, 1)));
  EXPECT_EQ(primary.server.receive_bytes(100), pattern(100, 1));
  answer(primary, beegfs::write_answer(100));
  EXPECT_TRUE(primary.client.closed_by_peer());
  EXPECT_TRUE(writer.client.closed_by_peer());
  EXPECT_TRUE(meta.client.closed_by_peer());
}

TEST_F(ProxyBeegfs, AnswersThatMakeNoSenseEndThatConnectionOnly) {
  ProxyProcess proxy(settings(4));
  ProxiedLink bad = open(proxy);
  ProxiedLink good = open(proxy);
  occupy(bad);
  ASSERT_TRUE(bad.server.send(word(5000)));
  EXPECT_TRUE(bad.client.closed_by_peer());
  EXPECT_TRUE(proxy.logs("5000 bytes where 4096 of a read's 4096 are left"));
  ASSERT_TRUE(good.client.send(read_request()));
  expect_served(good, read_request());
  EXPECT_EQ(proxy.status()["counters"]["framing_errors"], 1);
}

// Each would keep a thread of the server for 90 s, however many connections send one.
TEST_F(ProxyBeegfs, WritesOfNoBytesDoNotReachTheServer) {
  ProxyProcess proxy(settings(4));
  ProxiedLink bad = open(proxy);
  ProxiedLink good = open(proxy);
  ASSERT_TRUE(bad.client.send(write_request(1001, 0)));
  EXPECT_TRUE(bad.client.closed_by_peer());
  EXPECT_EQ(bad.server.receive_bytes(1), Buffer());
  ASSERT_TRUE(good.client.send(read_request(1001, 0)));
  ASSERT_EQ(good.server.receive_bytes(read_request(1001, 0).size()), read_request(1001, 0));
  answer(good, word(0));
  EXPECT_EQ(proxy.status()["counters"]["framing_errors"], 1);
}

// A mirror's primary and the balancing of chunks have servers move file data.
TEST_F(ProxyBeegfs, ChunksMoveOnlyForServers) {
  const Buffer resync = make_message({.type = MessageType::resync_local_file}, Buffer(1000));
  const Buffer done = make_message({.type = MessageType::resync_local_file_resp}, Buffer(4));
  for (const bool is_server : {true, false}) {
    ProxySettings with_servers = settings(4);
    with_servers.proxy = is_server ? "servers: 127.0.0.1" : "servers: 192.0.2.1";
    ProxyProcess proxy(with_servers);
    ProxiedLink client = open(proxy);
    ASSERT_TRUE(client.client.send(resync));
    EXPECT_TRUE(client.client.closed_by_peer());
    EXPECT_EQ(client.server.receive_bytes(1), Buffer());
    ProxiedLink other = open_link(proxy, server_);
    ASSERT_TRUE(other.client.send(resync));
    if (!is_server) {
      EXPECT_TRUE(other.client.closed_by_peer());
      continue;
    }
    ASSERT_EQ(other.server.receive_bytes(resync.size()), resync);
    answer(other, done);
  }
}

// It counts for 1 GiB at first, whatever it claims.
TEST_F(ProxyBeegfs, AWriteThatGoesOnAndOnIsChargedAsItMoves) {
  constexpr std::uint64_t kEighth = std::uint64_t{1} << 27;
  constexpr int kParts = 11;
  ProxyProcess proxy(settings(4));
  ProxiedLink link = open(proxy);
  const auto charged = [](const nlohmann::json& status, const char* when) {
    return status["virtual_pfs"][1][when].get<std::uint64_t>();
  };
  occupy(link, write_request(1001, std::size_t{1} << 40));
  EXPECT_EQ(charged(proxy.status(), "cost_sent") >> 27, 8U);
  const Buffer part(kEighth);
  std::thread sender([&] {
    for (int i = 0; i < kParts; ++i) EXPECT_TRUE(link.client.send(part));
  });
  for (int i = 0; i < kParts; ++i) {
    EXPECT_EQ(link.server.receive_bytes(part.size()).size(), part.size());
  }
  sender.join();
  EXPECT_TRUE(
      proxy.wait_until([&](const auto& now) { return charged(now, "cost_sent") >= 10 * kEighth; }));
  link.client.close();
  EXPECT_TRUE(proxy.wait_until(
      [&](const auto& now) { return charged(now, "cost_done") >= kParts * kEighth; }));
  EXPECT_LT(charged(proxy.status(), "cost_done"), (kParts + 1) * kEighth);
}

// Their clients come again with new connections, which have done no wrong yet.
TEST_F(ProxyBeegfs, ConnectionsThatReplaceStalledOnesGoOneAtATimeAndTakeNoSlot) {
  ProxySettings with_stalls = settings(2);
  with_stalls.timeouts = "client_stall: 3 s";
  ProxyProcess proxy(with_stalls);
  std::vector<ProxiedLink> victims;
  for (int i = 0; i < 2; ++i) victims.push_back(open(proxy));
  const Buffer write = write_request();
  {
    ProxiedLink first = open(proxy);
    ProxiedLink second = open(proxy);
    occupy(first, write);
    occupy(second, write);
    // Both give their slots up, since two wait for them.
    for (ProxiedLink& each : victims) ASSERT_TRUE(each.client.send(read_request(1002)));
    ASSERT_TRUE(proxy.wait_until(
        [](const nlohmann::json& now) { return now["counters"]["slots_given_up"] == 2; }));
    for (ProxiedLink& each : victims) expect_served(each, read_request(1002));
    EXPECT_TRUE(first.client.closed_by_peer());
    EXPECT_TRUE(second.client.closed_by_peer());
  }
  ASSERT_TRUE(proxy.wait_for_outstanding(0));

  ProxiedLink first = open(proxy);
  ProxiedLink second = open(proxy);
  occupy(first, write);
  ASSERT_TRUE(second.client.send(write));
  EXPECT_FALSE(second.server.readable(kQuiet));
  const Buffer data = pattern(kSmall, 3);
  for (ProxiedLink* const link : {&first, &second}) {
    ASSERT_TRUE(link->client.send(data));
    const Buffer rest = link == &first ? data : write + data;
    EXPECT_EQ(link->server.receive_bytes(rest.size()), rest);
    answer(*link, beegfs::write_answer(kSmall));
  }
}

TEST_F(ProxyBeegfs, ALostServerEndsTheConnectionAndFreesItsSlot) {
  ProxyProcess proxy(settings());
  ProxiedLink first = open(proxy);
  occupy(first);
  ProxiedLink second = open(proxy);
  ASSERT_TRUE(second.client.send(read_request()));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  first.server.close();
  EXPECT_TRUE(first.client.closed_by_peer());
  expect_served(second, read_request());
}

}  // namespace
}  // namespace vpfs::test
