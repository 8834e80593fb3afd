// The proxy before a BeeGFS storage server whose part a test plays by hand.

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/byte_writer.h"
#include "protocols/beegfs/file_io.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using beegfs::encode_file_io;
using beegfs::make_message;
using beegfs::MessageType;
using std::chrono::milliseconds;

constexpr milliseconds kQuiet{150};
constexpr std::size_t kSmall = 4096;

struct IoOf {
  MessageType type = MessageType::read_local_file;
  std::int64_t offset = 0;
  std::size_t count = kSmall;
  std::uint32_t user = 1001;
  std::uint32_t node = 7;
  std::uint16_t target = 101;
  std::string handle = "1#5-68A-1";
};

Buffer request(const IoOf& io) {
  return encode_file_io({.type = io.type, .target = io.target, .user = io.user},
                        {.offset = io.offset,
                         .count = static_cast<std::int64_t>(io.count),
                         .access_flags = 4,
                         .file_handle = io.handle,
                         .client = io.node,
                         .path = {.flags = 1, .owner = 1001, .directory = "4-68A-1"},
                         .target = io.target});
}
Buffer read_request(std::uint32_t user = 1001, std::size_t count = kSmall) {
  return request({.count = count, .user = user});
}
Buffer write_request(std::uint32_t user = 1001, std::size_t count = kSmall) {
  return request({.type = MessageType::write_local_file, .count = count, .user = user});
}

Buffer word(std::int64_t value) {
  Buffer bytes;
  ByteWriter(bytes).i64(value);
  return bytes;
}

Buffer operator+(Buffer one, const Buffer& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

Buffer pattern(std::size_t size, unsigned seed) {
  Buffer data(size);
  for (std::size_t i = 0; i < size; ++i) {
    data[i] = static_cast<std::byte>((i * 2654435761U >> 13) + seed);
  }
  return data;
}

Buffer read_answer(const Buffer& data) {
  return word(static_cast<std::int64_t>(data.size())) + data + word(0);
}

// What a connection begins with.
Buffer introduction(beegfs::NodeType type, std::uint32_t node) {
  Buffer direct;
  ByteWriter(direct).u32(0);
  Buffer peer;
  ByteWriter out(peer);
  out.u32(static_cast<std::uint32_t>(type));
  out.u32(node);
  return make_message({.type = MessageType::set_channel_direct}, direct) +
         make_message({.type = MessageType::peer_info}, peer);
}

class ProxyBeegfs : public ::testing::Test {
 protected:
  [[nodiscard]] ProxySettings settings(unsigned depth = 1) const {
    return {
        .upstream = server_.port(),
        .protocol = "beegfs",
        .workers = 2,
        .depth = depth,
        .virtual_pfs = "a: {weight: 1}, b: {weight: 1}",
        .rules = "[{match: {uid: 1001}, virtual_pfs: a}, {match: {uid: 1002}, virtual_pfs: b}]"};
  }
  Link open(const ProxyProcess& proxy, std::uint32_t node = 7,
            beegfs::NodeType type = beegfs::NodeType::client) {
    Link link = open_link(proxy, server_);
    const Buffer hello = introduction(type, node);
    EXPECT_TRUE(link.client.send(hello));
    EXPECT_EQ(link.server.receive_bytes(hello.size()), hello);
    return link;
  }
  // A request at the server, so that a depth of 1 is used up.
  static void occupy(Link& link, const Buffer& message = read_request()) {
    ASSERT_TRUE(link.client.send(message));
    ASSERT_EQ(link.server.receive_bytes(message.size()), message);
  }
  static void expect_served(Link& link, const Buffer& message) {
    ASSERT_EQ(link.server.receive_bytes(message.size()), message);
    const Buffer answer = read_answer(pattern(kSmall, 3));
    ASSERT_TRUE(link.server.send(answer));
    ASSERT_EQ(link.client.receive_bytes(answer.size()), answer);
  }
  static void answer(Link& link, const Buffer& bytes) {
    ASSERT_TRUE(link.server.send(bytes));
    ASSERT_EQ(link.client.receive_bytes(bytes.size()), bytes);
  }

  FakeDataServer server_;
};

TEST_F(ProxyBeegfs, AMessageReachesTheServerInOnePieceOrNotAtAll) {
  ProxyProcess proxy(settings(4));
  Link link = open(proxy);
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
  Link link = open(proxy);
  unsigned seed = 0;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{49'000},
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
  EXPECT_EQ(proxy.status()["virtual_pfs"][1]["done_requests"], 11) << "a write of nothing is none";
  EXPECT_EQ(proxy.status()["virtual_pfs"][1]["failed_requests"], 0);
}

TEST_F(ProxyBeegfs, AHeldWriteIsItsHeaderAndItsDataStayInTheSocket) {
  ProxyProcess proxy(settings());
  Link first = open(proxy);
  occupy(first);
  Link second = open(proxy);
  const std::size_t size = std::size_t{32} << 20;
  const Buffer write = write_request(1002, size);
  const Buffer data = pattern(size, 5);
  const std::size_t before = proxy.memory();
  std::thread sender([&] { EXPECT_TRUE(second.client.send(write + data)); });
  ASSERT_TRUE(proxy.wait_for_queued(1));
  EXPECT_FALSE(second.server.readable(kQuiet));
  EXPECT_LT(proxy.memory(), before + (std::size_t{4} << 20));
  EXPECT_EQ(proxy.status()["counters"]["client_stalls"], 0);
  answer(first, read_answer(pattern(kSmall, 1)));
  EXPECT_EQ(second.server.receive_bytes(write.size() + size), write + data);
  sender.join();
  answer(second, beegfs::write_answer(static_cast<std::int64_t>(size)));
}

// Requests of one connection go one at a time, whoever sends two.
TEST_F(ProxyBeegfs, RequestsThatAreSentTogetherGoOneAfterTheOther) {
  ProxyProcess proxy(settings(4));
  Link link = open(proxy);
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
  Link first = open(proxy);
  occupy(first);
  Link reader = open(proxy);
  Link writer = open(proxy);
  const std::size_t size = 3'000'000;
  ASSERT_TRUE(reader.client.send(read_request(1002)));
  std::thread sender(
      [&] { EXPECT_TRUE(writer.client.send(write_request(1002, size) + pattern(size, 1))); });
  EXPECT_EQ(reader.client.receive_bytes(8), word(-3));
  EXPECT_EQ(writer.client.receive_bytes(48), beegfs::write_answer(-22));
  sender.join();
  EXPECT_EQ(proxy.status()["counters"]["requests_refused"], 2);
  answer(first, read_answer(pattern(kSmall, 1)));
  // Nothing of them has been forwarded, and both connections go on.
  for (Link* link : {&reader, &writer}) {
    EXPECT_FALSE(link->server.readable(milliseconds(20)));
    ASSERT_TRUE(link->client.send(read_request()));
    expect_served(*link, read_request());
  }
}

TEST_F(ProxyBeegfs, TheWorkOfAClientThatHasGoneIsDropped) {
  ProxyProcess proxy(settings());
  Link first = open(proxy);
  occupy(first);
  Link reader = open(proxy);
  Link writer = open(proxy);
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

// A client that repeats a write elsewhere must not find the first one come behind it.
TEST_F(ProxyBeegfs, AWriteWhoseClientHasGoneIsNotPassedOnLate) {
  ProxyProcess proxy(settings());
  Link first = open(proxy);
  occupy(first);
  for (const bool with_reset : {true, false}) {
    for (int round = 0; round < 5; ++round) {
      Link second = open(proxy);
      ASSERT_TRUE(second.client.send(write_request() + pattern(kSmall, 1)));
      ASSERT_TRUE(proxy.wait_for_queued(1));
      with_reset ? second.client.reset() : second.client.close();
      answer(first, read_answer(pattern(kSmall, 3)));
      EXPECT_EQ(second.server.receive_bytes(1), Buffer()) << "round " << round;
      occupy(first);
    }
  }
  answer(first, read_answer(pattern(kSmall, 3)));
  EXPECT_TRUE(proxy.wait_until([](const auto& now) { return now["outstanding"] == 0; }));
}

TEST_F(ProxyBeegfs, WhatServersSendPassesThoughTheDepthIsUsedUp) {
  ProxyProcess proxy(settings());
  Link first = open(proxy);
  occupy(first);
  Link meta = open(proxy, 1, beegfs::NodeType::meta);
  ASSERT_TRUE(meta.client.send(read_request()));
  expect_served(meta, read_request());
  const Buffer forwarded =
      encode_file_io({.feature_flags = 24, .type = MessageType::write_local_file, .target = 101},
                     {.count = 100, .file_handle = "1#2", .client = 7, .target = 101});
  ASSERT_TRUE(meta.client.send(forwarded + pattern(100, 1)));
  ASSERT_EQ(meta.server.receive_bytes(forwarded.size() + 100), forwarded + pattern(100, 1));
  answer(meta, beegfs::write_answer(100));
  EXPECT_EQ(proxy.status()["virtual_pfs"][0]["done_requests"], 0);
  answer(first, read_answer(pattern(kSmall, 1)));
}

TEST_F(ProxyBeegfs, EachTargetHasItsOwnSchedulerWhenAskedFor) {
  ProxySettings per_target = settings();
  per_target.scheduler = "per_target: true";
  ProxyProcess proxy(per_target);
  Link first = open(proxy);
  occupy(first);
  Link waits = open(proxy);
  ASSERT_TRUE(waits.client.send(read_request()));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  Link other = open(proxy);
  const Buffer elsewhere = request({.target = 102});
  ASSERT_TRUE(other.client.send(elsewhere));
  expect_served(other, elsewhere);
  const nlohmann::json now = proxy.status();
  ASSERT_EQ(now["targets"].size(), 2U);
  EXPECT_EQ(now["targets"][0]["target"], 101);
  EXPECT_EQ(now["targets"][0]["queued"], 1);
  EXPECT_EQ(now["virtual_pfs"][1]["oldest_waits_for_target"], 101);
  answer(first, read_answer(pattern(kSmall, 1)));
  expect_served(waits, read_request());
}

TEST_F(ProxyBeegfs, AWriteBackOfNobodyBelongsToTheOnlyUserOfItsFile) {
  ProxyProcess proxy(settings(4));
  Link link = open(proxy);
  const auto write = [&](std::uint32_t user, const std::string& handle) {
    const Buffer message = request(
        {.type = MessageType::write_local_file, .count = 10, .user = user, .handle = handle});
    ASSERT_TRUE(link.client.send(message + pattern(10, 1)));
    ASSERT_EQ(link.server.receive_bytes(message.size() + 10), message + pattern(10, 1))
        << "what goes to the server is what came";
    answer(link, beegfs::write_answer(10));
  };
  write(1002, "1#a");
  write(0, "1#a");
  write(0, "2#a");
  write(1001, "1#a");
  write(0, "1#a");
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["virtual_pfs"][0]["done_requests"], 2);
  EXPECT_EQ(now["virtual_pfs"][1]["done_requests"], 1);
  EXPECT_EQ(now["virtual_pfs"][2]["done_requests"], 2);
  EXPECT_EQ(now["counters"]["write_back_by_file"], 1);
  EXPECT_EQ(now["counters"]["write_back_unknown"], 2);
}

TEST_F(ProxyBeegfs, WhatOneApplicationHoldsOfANodesConnectionsIsBounded) {
  ProxySettings limited = settings();
  limited.limits = "max_held_per_client: 2";
  ProxyProcess proxy(limited);
  Link first = open(proxy, 9);
  occupy(first);
  std::vector<Link> links;
  for (int i = 0; i < 4; ++i) links.push_back(open(proxy));
  ASSERT_TRUE(links[0].client.send(request({.offset = 0})));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  ASSERT_TRUE(links[1].client.send(request({.offset = 4096})));
  ASSERT_TRUE(proxy.wait_for_queued(2));
  ASSERT_TRUE(links[2].client.send(request({.offset = 8192})));
  EXPECT_EQ(links[2].client.receive_bytes(8), word(-3));
  // Another application's is not affected.
  ASSERT_TRUE(links[3].client.send(read_request(1002)));
  ASSERT_TRUE(proxy.wait_for_queued(3));
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["counters"]["excess_requests"], 1);
  EXPECT_EQ(now["virtual_pfs"][1]["excess_requests"], 1);
  ASSERT_EQ(now["clients"].size(), 2U);
  EXPECT_EQ(now["clients"][1]["client"], "127.0.0.1 node 7");
  EXPECT_EQ(now["clients"][1]["connections"], 4) << "those that have asked for something";
  EXPECT_EQ(now["clients"][1]["max_held"], 2);
  EXPECT_TRUE(proxy.logs("max_held_per_client"));
  answer(first, read_answer(pattern(kSmall, 1)));
}

TEST_F(ProxyBeegfs, ADrainLetsEverythingEndThatHasBegun) {
  ProxyProcess proxy(settings(4));
  Link writer = open(proxy);
  Link meta = open(proxy, 1, beegfs::NodeType::meta);
  Link idle = open(proxy);
  const std::size_t size = 2'000'000;
  const Buffer write = write_request(1001, size);
  const Buffer data = pattern(size, 9);
  const Buffer unlink = make_message({.type = MessageType::unlink_local_file}, Buffer(30));
  ASSERT_TRUE(meta.client.send(unlink));
  ASSERT_EQ(meta.server.receive_bytes(unlink.size()), unlink);
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
  EXPECT_TRUE(writer.client.closed_by_peer());
  EXPECT_TRUE(meta.client.closed_by_peer());
}

TEST_F(ProxyBeegfs, AnswersThatMakeNoSenseEndThatConnectionOnly) {
  ProxyProcess proxy(settings(4));
  Link bad = open(proxy);
  Link good = open(proxy);
  occupy(bad);
  ASSERT_TRUE(bad.server.send(word(5000)));
  EXPECT_TRUE(bad.client.closed_by_peer());
  EXPECT_TRUE(proxy.logs("5000 bytes where 4096 of a read's 4096 are left"));
  ASSERT_TRUE(good.client.send(read_request()));
  expect_served(good, read_request());
  EXPECT_EQ(proxy.status()["counters"]["framing_errors"], 1);
}

TEST_F(ProxyBeegfs, ALostServerEndsTheConnectionAndFreesItsSlot) {
  ProxyProcess proxy(settings());
  Link first = open(proxy);
  occupy(first);
  Link second = open(proxy);
  ASSERT_TRUE(second.client.send(read_request()));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  first.server.close();
  EXPECT_TRUE(first.client.closed_by_peer());
  expect_served(second, read_request());
}

}  // namespace
}  // namespace vpfs::test
