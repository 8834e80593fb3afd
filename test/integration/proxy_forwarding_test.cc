// What vpfs-proxy forwards, byte for byte, against a scripted data server.

#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::IoType;
using orangefs::Op;

Buffer random_bytes(std::size_t size, std::mt19937_64& random) {
  Buffer bytes(size);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random() & 0xffU);
  return bytes;
}

void append(Buffer& stream, const Buffer& message) {
  stream.insert(stream.end(), message.begin(), message.end());
}

// Messages of every relevant size. Those of a client are data of one write, with metadata requests
// in between.
constexpr orangefs::Tag kWrite = 1;
Buffer stream_of_messages(std::uint64_t seed, bool of_client) {
  std::mt19937_64 random(seed);
  Buffer stream;
  std::vector<std::size_t> sizes = {0,      1,      23,     24,      25,        4096, 16384, 16385,
                                    49'127, 49'152, 65'536, 262'144, 1'048'576, 0,    16};
  for (int i = 0; i < 200; ++i) sizes.push_back(random() % 2000);
  sizes.push_back(orangefs::kMaxMessageSize);
  for (int i = 0; i < 20; ++i) sizes.push_back(random() % 300'000);
  orangefs::Tag tag = 1000;
  for (const std::size_t size : sizes) {
    ++tag;
    append(stream, data_message(of_client ? kWrite : tag, random_bytes(size, random)));
    if (of_client && tag % 3 == 0) append(stream, getattr_request(++tag));
  }
  return stream;
}

TEST(ProxyForwarding, MessagesOfEverySizePassUnchangedInBothDirections) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(start_write(link, kWrite, std::int64_t{1} << 40));
  const Buffer up = stream_of_messages(1, true);
  const Buffer down = stream_of_messages(2, false);
  std::jthread client_sends([&] {
    std::mt19937_64 random(3);
    EXPECT_TRUE(link.client.send_fragments(up, random));
  });
  std::jthread server_sends([&] {
    std::mt19937_64 random(4);
    EXPECT_TRUE(link.server.send_fragments(down, random));
  });
  EXPECT_TRUE(link.server.receive_bytes(up.size()) == up);
  EXPECT_TRUE(link.client.receive_bytes(down.size()) == down);
}

TEST(ProxyForwarding, OtherTagsOvertakeAHeldRequestAndKeepTheirOrder) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1});
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(start_write(link, 1, 70'010));
  const Buffer held = io_request(2, {.offset = 65536});
  ASSERT_TRUE(link.client.send(held));
  ASSERT_TRUE(proxy.wait_for_queued(1));

  const std::vector<Buffer> others = {getconfig_request(3), getattr_request(4),
                                      data_message(1, Buffer(10)), data_message(1, Buffer(70'000)),
                                      getattr_request(5)};
  for (const Buffer& message : others) ASSERT_TRUE(link.client.send(message));
  for (const Buffer& message : others) EXPECT_EQ(link.server.receive().value().bytes(), message);
  EXPECT_EQ(proxy.status()["queued"], 1);

  ASSERT_TRUE(link.server.send(write_completion(1, 70'010)));
  EXPECT_EQ(link.server.receive().value().bytes(), held);
  EXPECT_EQ(link.client.receive().value().bytes(), write_completion(1, 70'010));
}

TEST(ProxyForwarding, FlowDataMayLookLikeProtocolMessages) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 2});
  ProxiedLink link = open_link(proxy, server);
  const Buffer request = small_read_request(9, {.size = 100});
  const Buffer refusal = orangefs::error_message(2, Op::io, orangefs::Status{-1073741826});
  const auto size = static_cast<std::int64_t>(request.size());
  const auto refusal_size = static_cast<std::int64_t>(refusal.size());

  ASSERT_TRUE(link.client.send(io_request(1, {.type = IoType::write, .size = size * 2})));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.server.send(io_response(1, 0)));
  ASSERT_TRUE(link.client.receive());
  // Data that look like a request, and data that look like the head of one and the rest of it.
  const std::span<const std::byte> whole(request);
  const Buffer head(whole.begin(), whole.begin() + orangefs::kBmiHeaderSize);
  const Buffer rest(whole.begin() + orangefs::kBmiHeaderSize, whole.end());
  for (const Buffer& message :
       {data_message(1, request), data_message(1, head), data_message(1, rest)}) {
    ASSERT_TRUE(link.client.send(message));
    EXPECT_EQ(link.server.receive().value().bytes(), message);
  }
  EXPECT_EQ(proxy.status()["outstanding"], 1);
  ASSERT_TRUE(link.server.send(write_completion(1, size * 2)));

  ASSERT_TRUE(link.client.send(io_request(2, {.size = refusal_size * 3})));
  ASSERT_TRUE(link.server.receive());
  ASSERT_TRUE(link.server.send(io_response(2, refusal_size * 3)));
  const std::span<const std::byte> error = std::span(refusal).subspan(orangefs::kBmiHeaderSize);
  const std::vector<Buffer> data = {
      data_message(2, error), data_message(2, refusal), data_message(2, write_completion(2, 7)),
      data_message(2, Buffer(static_cast<std::size_t>(refusal_size) * 2 - error.size() -
                             write_completion(2, 7).size()))};
  ASSERT_TRUE(proxy.wait_for_outstanding(1));
  for (const Buffer& message : data) {
    EXPECT_EQ(proxy.status()["outstanding"], 1);
    ASSERT_TRUE(link.server.send(message));
  }
  EXPECT_TRUE(proxy.wait_for_outstanding(0));
  const nlohmann::json row = proxy.status()["virtual_pfs"][0];
  EXPECT_EQ(row["done_requests"], 2);
  EXPECT_EQ(row["failed_requests"], 0);
  EXPECT_EQ(row["done_bytes"], size * 2 + refusal_size * 3);
  EXPECT_EQ(link.client.receive().value().bytes(), write_completion(1, size * 2));
  EXPECT_EQ(link.client.receive().value().bytes(), io_response(2, refusal_size * 3));
  for (const Buffer& message : data) EXPECT_EQ(link.client.receive().value().bytes(), message);
}

TEST(ProxyForwarding, StartedFlowsMoveWhileTheSchedulerIsFull) {
  constexpr std::size_t kFlow = 8U << 20;
  constexpr std::size_t kPart = orangefs::kDefaultFlowBufferSize;
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 2});
  ProxiedLink link = open_link(proxy, server);
  const StampedFile written = {.file = 1, .generation = 5};
  const StampedFile read = {.file = 2, .generation = 9};
  ASSERT_TRUE(link.client.send(io_request(1, {.type = IoType::write, .size = kFlow})));
  ASSERT_TRUE(link.client.send(io_request(2, {.size = kFlow})));
  ASSERT_TRUE(link.client.send(io_request(3, {.size = kFlow})));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  for (const orangefs::Tag tag : {1U, 2U}) {
    EXPECT_EQ(link.server.receive().value().header.tag, tag);
    ASSERT_TRUE(link.server.send(io_response(tag, kFlow)));
    EXPECT_EQ(link.client.receive().value().bytes(), io_response(tag, kFlow));
  }
  for (std::size_t at = 0; at < kFlow; at += kPart) {
    std::jthread client_sends(
        [&] { EXPECT_TRUE(link.client.send(data_message(1, written.bytes(at, kPart)))); });
    ASSERT_EQ(problem_of(link.server.receive().value().payload, written, at), "");
    std::jthread server_sends(
        [&] { EXPECT_TRUE(link.server.send(data_message(2, read.bytes(at, kPart)))); });
    ASSERT_EQ(problem_of(link.client.receive().value().payload, read, at), "");
  }
  // The read ended with its last byte; the write waits for its acknowledgement.
  EXPECT_EQ(link.server.receive().value().bytes(), io_request(3, {.size = kFlow}));
  EXPECT_TRUE(proxy.wait_for_outstanding(2));
  ASSERT_TRUE(link.server.send(write_completion(1, kFlow)));
  EXPECT_TRUE(proxy.wait_for_outstanding(1));
}

// These data follow held requests on the same connection.
TEST(ProxyForwarding, DataOfStartedWritesPassTheLimitOfHeldRequests) {
  constexpr orangefs::Tag kWrites = 6;
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 2, .limits = "held_requests: 2"});
  ProxiedLink link = open_link(proxy, server);
  const auto request = [](orangefs::Tag tag) {
    return io_request(tag, {.type = IoType::write, .size = 65536});
  };
  for (orangefs::Tag tag = 1; tag <= kWrites; ++tag) ASSERT_TRUE(link.client.send(request(tag)));
  for (const orangefs::Tag tag : {1U, 2U})
    EXPECT_EQ(link.server.receive().value().bytes(), request(tag));
  for (orangefs::Tag tag = 1; tag <= kWrites; ++tag) {
    const Buffer data = data_message(tag, StampedFile{.file = tag}.bytes(0, 65536));
    ASSERT_TRUE(link.server.send(io_response(tag, 0)));
    EXPECT_EQ(link.client.receive().value().bytes(), io_response(tag, 0));
    ASSERT_TRUE(link.client.send(data));
    EXPECT_EQ(link.server.receive().value().bytes(), data);
    ASSERT_TRUE(link.server.send(write_completion(tag, 65536)));
    EXPECT_EQ(link.client.receive().value().bytes(), write_completion(tag, 65536));
    if (tag + 2 <= kWrites) EXPECT_EQ(link.server.receive().value().bytes(), request(tag + 2));
  }
  EXPECT_TRUE(proxy.wait_for_outstanding(0));
}

TEST(ProxyForwarding, EqualRequestsAreNotTakenForRepetitions) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  for (const orangefs::Tag tag : {1U, 2U, 3U}) {
    ASSERT_TRUE(link.client.send(small_read_request(tag, {.size = 4096})));
  }
  for (const orangefs::Tag tag : {1U, 2U, 3U}) {
    EXPECT_EQ(link.server.receive().value().bytes(), small_read_request(tag, {.size = 4096}));
  }
  for (const orangefs::Tag tag : {1U, 2U, 3U}) {
    const Buffer answer = small_read_response(tag, StampedFile{.file = tag}.bytes(0, 4096));
    ASSERT_TRUE(link.server.send(answer));
    EXPECT_EQ(link.client.receive().value().bytes(), answer);
  }
  // The tag may be used again, since its operation has ended.
  ASSERT_TRUE(link.client.send(small_read_request(1, {.size = 4096})));
  EXPECT_EQ(link.server.receive().value().header.tag, 1);
}

TEST(ProxyForwarding, EqualTagsOfTwoConnectionsDoNotMix) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .workers = 2});
  ProxiedLink one = open_link(proxy, server);
  ProxiedLink two = open_link(proxy, server);
  for (ProxiedLink* link : {&one, &two}) {
    ASSERT_TRUE(link->client.send(small_read_request(7, {.size = 4096})));
    ASSERT_TRUE(link->server.receive());
  }
  const Buffer for_one = small_read_response(7, StampedFile{.file = 1}.bytes(0, 4096));
  const Buffer for_two = small_read_response(7, StampedFile{.file = 2}.bytes(0, 4096));
  ASSERT_TRUE(two.server.send(for_two));
  EXPECT_EQ(two.client.receive().value().bytes(), for_two);
  EXPECT_TRUE(proxy.wait_for_outstanding(1));
  ASSERT_TRUE(one.server.send(for_one));
  EXPECT_EQ(one.client.receive().value().bytes(), for_one);
}

// The last bytes behind a full socket must not wait for the sender's next message.
TEST(ProxyForwarding, ReceiverThatPausesGetsTheLastByteToo) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .timeouts = "client_stall: 1 h"});
  ProxiedLink link = open_link(proxy, server, 4096);
  const Buffer message = data_message(5, StampedFile{.file = 3}.bytes(0, 700));
  const std::size_t sent = fill_client_side(proxy, link, message);
  for (std::size_t i = 0; i < sent; ++i) {
    const auto received = link.client.receive(5s);
    ASSERT_TRUE(received) << "message " << i << " of " << sent << " is missing";
    ASSERT_TRUE(received->bytes() == message);
  }
}

}  // namespace
}  // namespace vpfs::test
