// The cost of requests that move less than they ask for, or take more of the proxy than they seem
// to.

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::Tag;

constexpr std::int64_t kAsked = 10 << 20;
constexpr std::int64_t kHas = 4096;

// Reads a small file with a request for much more.
void read_small_file(ProxiedLink& link, Tag tag) {
  ASSERT_TRUE(link.client.send(io_request(tag, {.size = kAsked})));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.server.send(io_response(tag, kHas)));
  ASSERT_TRUE(link.server.send(data_message(tag, Buffer(kHas))));
  ASSERT_TRUE(link.client.receive());
  ASSERT_TRUE(link.client.receive());
}

TEST(ProxyCosts, ReadsOfAFileWhoseSizeIsKnownLeaveRoomForOthers) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 16, .depth_bytes = "8 MiB"});
  ProxiedLink reader = open_link(proxy, server);
  ProxiedLink victim = open_link(proxy, server);
  read_small_file(reader, 1);
  for (Tag tag = 2; tag <= 9; ++tag) {
    ASSERT_TRUE(reader.client.send(io_request(tag, {.size = kAsked})));
    ASSERT_TRUE(victim.client.send(io_request(tag, {.size = 512 << 10})));
  }
  EXPECT_TRUE(proxy.wait_for_outstanding(16));
  EXPECT_EQ(proxy.status()["queued"], 0);
}

TEST(ProxyCosts, AReadLargerThanTheDepthDoesNotGoAlone) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 16, .depth_bytes = "8 MiB"});
  ProxiedLink reader = open_link(proxy, server);
  ProxiedLink victim = open_link(proxy, server);
  ASSERT_TRUE(reader.client.send(io_request(1, {.size = kAsked})));
  ASSERT_TRUE(victim.client.send(io_request(1, {.size = 512 << 10})));
  ASSERT_TRUE(victim.client.send(io_request(2, {.size = 512 << 10})));
  EXPECT_TRUE(proxy.wait_for_outstanding(3));
}

// A job reads many files, each once and in a new process.
TEST(ProxyCosts, ReadsOfUnknownFilesCostWhatSuchReadsHaveGiven) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 16, .depth_bytes = "8 MiB"});
  for (Tag tag = 1; tag <= 60; ++tag) {
    ProxiedLink link = open_link(proxy, server);
    ASSERT_TRUE(link.client.send(io_request(tag, {.size = kAsked, .datafile = 1000 + tag})));
    ASSERT_TRUE(link.server.receive());
    ASSERT_TRUE(link.server.send(io_response(tag, 0)));
    ASSERT_TRUE(link.client.receive());
  }
  ProxiedLink reader = open_link(proxy, server);
  for (Tag tag = 1; tag <= 16; ++tag) {
    ASSERT_TRUE(reader.client.send(io_request(tag, {.size = kAsked, .datafile = 2000 + tag})));
  }
  EXPECT_TRUE(proxy.wait_for_outstanding(16));
}

// Without this, the proxy would do nothing but refuse the flooder's requests.
TEST(ProxyCosts, ARefusedClientIsReadSlowly) {
  constexpr int kRefused = 1280;
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1, .limits = "held_requests: 4"});
  ProxiedLink flooder = open_link(proxy, server);
  const auto begin = std::chrono::steady_clock::now();
  std::jthread flood([&] {
    for (Tag tag = 1; tag <= 5000; ++tag) {
      if (!flooder.client.send(small_read_request(tag, {.size = 4096}))) return;
    }
  });
  ASSERT_TRUE(proxy.wait_until([](const nlohmann::json& status) {
    return status["counters"]["requests_refused"] >= kRefused;
  }));
  // Every 50 ms at most 63 are refused, and then those of one receive: 56 in 16 KiB.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 400ms);
  flooder.server.close();
}

}  // namespace
}  // namespace vpfs::test
