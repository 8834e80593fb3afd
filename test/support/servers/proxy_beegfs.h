#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "base/byte_writer.h"
#include "protocols/beegfs/file_io.h"
#include "protocols/beegfs/types.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {

using std::chrono::milliseconds;

inline constexpr milliseconds kQuiet{150};
inline constexpr std::size_t kSmall = 4096;

// The fields of a client's read or write message.
struct IoOf {
  beegfs::MessageType type = beegfs::MessageType::read_local_file;
  std::int64_t offset = 0;
  std::size_t count = kSmall;
  std::uint32_t user = 1001;
  std::uint32_t node = 7;
  std::uint16_t target = 101;
  std::string handle = "1#5-68A-1";
  std::uint16_t flags = 0;
  std::optional<std::uint16_t> header_target = {};  // if the header names another target
};

inline Buffer request(const IoOf& io) {
  return beegfs::encode_file_io({.feature_flags = io.flags,
                                 .type = io.type,
                                 .target = io.header_target.value_or(io.target),
                                 .user = io.user},
                                {.offset = io.offset,
                                 .count = static_cast<std::int64_t>(io.count),
                                 .access_flags = 4,
                                 .file_handle = io.handle,
                                 .client = io.node,
                                 .path = {.flags = 1, .owner = 1001, .directory = "4-68A-1"},
                                 .target = io.target});
}
inline Buffer read_request(std::uint32_t user = 1001, std::size_t count = kSmall) {
  return request({.count = count, .user = user});
}
inline Buffer write_request(std::uint32_t user = 1001, std::size_t count = kSmall) {
  return request({.type = beegfs::MessageType::write_local_file, .count = count, .user = user});
}

inline Buffer word(std::int64_t value) {
  Buffer bytes;
  ByteWriter(bytes).i64(value);
  return bytes;
}

inline Buffer operator+(Buffer one, const Buffer& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

inline Buffer pattern(std::size_t size, unsigned seed) {
  Buffer data(size);
  for (std::size_t i = 0; i < size; ++i) {
    data[i] = static_cast<std::byte>((i * 2654435761U >> 13) + seed);
  }
  return data;
}

inline Buffer read_answer(const Buffer& data) {
  return word(static_cast<std::int64_t>(data.size())) + data + word(0);
}

// The first messages of a connection.
inline Buffer introduction(beegfs::NodeType type, std::uint32_t node) {
  Buffer direct;
  ByteWriter(direct).u32(0);
  Buffer peer;
  ByteWriter out(peer);
  out.u32(static_cast<std::uint32_t>(type));
  out.u32(node);
  return beegfs::make_message({.type = beegfs::MessageType::set_channel_direct}, direct) +
         beegfs::make_message({.type = beegfs::MessageType::peer_info}, peer);
}

// The proxy in front of a storage server that the test plays.
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
  ProxiedLink open(const ProxyProcess& proxy, std::uint32_t node = 7,
                   beegfs::NodeType type = beegfs::NodeType::client) {
    ProxiedLink link = open_link(proxy, server_);
    const Buffer hello = introduction(type, node);
    EXPECT_TRUE(link.client.send(hello));
    EXPECT_EQ(link.server.receive_bytes(hello.size()), hello);
    return link;
  }
  // Makes a request outstanding, which uses up a depth of 1.
  static void occupy(ProxiedLink& link, const Buffer& message = read_request()) {
    ASSERT_TRUE(link.client.send(message));
    ASSERT_EQ(link.server.receive_bytes(message.size()), message);
  }
  static void expect_served(ProxiedLink& link, const Buffer& message) {
    ASSERT_EQ(link.server.receive_bytes(message.size()), message);
    const Buffer answer = read_answer(pattern(kSmall, 3));
    ASSERT_TRUE(link.server.send(answer));
    ASSERT_EQ(link.client.receive_bytes(answer.size()), answer);
  }
  static void answer(ProxiedLink& link, const Buffer& bytes) {
    ASSERT_TRUE(link.server.send(bytes));
    ASSERT_EQ(link.client.receive_bytes(bytes.size()), bytes);
  }

  FakeDataServer server_;
};

}  // namespace vpfs::test
