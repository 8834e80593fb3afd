#include "proxy/handover/stream_counts.h"

#include <array>
#include <cstddef>
#include <utility>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/net/socket_pair.h"

namespace vpfs::proxy {
namespace {

class StreamCountsTest : public testing::Test {
 protected:
  StreamCountsTest() : pair_(net::connected_pair(context_)) {}

  [[nodiscard]] int one() { return pair_.first.native_handle(); }
  [[nodiscard]] int other() { return pair_.second.native_handle(); }
  void send(int from, std::size_t size) {
    ASSERT_EQ(::send(from, bytes_.data(), size, 0), static_cast<ssize_t>(size));
  }

  asio::io_context context_;
  std::pair<net::Socket, net::Socket> pair_;
  std::array<std::byte, 4096> bytes_ = {};
};

TEST_F(StreamCountsTest, WhatComesAndIsNotReadChangesNothing) {
  const auto before = stream_counts(one());
  ASSERT_TRUE(before);
  send(other(), 1000);
  ASSERT_EQ(::recv(one(), bytes_.data(), 1000, MSG_PEEK), 1000);
  EXPECT_EQ(stream_counts(one()), before);
}

TEST_F(StreamCountsTest, EachByteThatIsReadOrWrittenCounts) {
  send(other(), 1000);
  const auto before = stream_counts(one());
  ASSERT_TRUE(before);
  ASSERT_EQ(::recv(one(), bytes_.data(), 1, 0), 1);
  EXPECT_EQ(stream_counts(one())->taken, before->taken + 1);
  ASSERT_EQ(::recv(one(), nullptr, 998, MSG_TRUNC), 998);
  EXPECT_EQ(stream_counts(one())->taken, before->taken + 999);
  EXPECT_EQ(stream_counts(one())->given, before->given);
  send(one(), 7);
  EXPECT_EQ(stream_counts(one())->given, before->given + 7);
}

TEST_F(StreamCountsTest, BytesCountAsGivenWhetherTheyHaveArrivedOrNot) {
  const auto before = stream_counts(one());
  ASSERT_TRUE(before);
  std::size_t given = 0;
  for (ssize_t sent = 0; sent >= 0;) {
    sent = ::send(one(), bytes_.data(), bytes_.size(), MSG_DONTWAIT);
    if (sent > 0) given += static_cast<std::size_t>(sent);
  }
  EXPECT_EQ(stream_counts(one())->given, before->given + given);
  for (std::size_t taken = 0; taken < given / 2;) {
    const ssize_t size = ::recv(other(), bytes_.data(), bytes_.size(), 0);
    if (size > 0) taken += static_cast<std::size_t>(size);
    ASSERT_EQ(stream_counts(one())->given, before->given + given);
  }
}

TEST_F(StreamCountsTest, CopiesOfADescriptorAreTheSameSocketAndOthersAreNot) {
  const int copy = ::dup(one());
  EXPECT_EQ(stream_counts(copy), stream_counts(one()));
  ::close(copy);
  EXPECT_NE(stream_counts(one())->cookie, stream_counts(other())->cookie);
}

TEST_F(StreamCountsTest, AConnectionThatEndsHasNone) {
  ASSERT_TRUE(stream_counts(one()));
  ::shutdown(other(), SHUT_WR);
  std::byte byte = {};
  while (::recv(one(), &byte, 1, 0) < 0) {
  }
  EXPECT_FALSE(stream_counts(one()));
  EXPECT_FALSE(stream_counts(other()));
  EXPECT_FALSE(stream_counts(0));
}

TEST_F(StreamCountsTest, AStreamEndsForEachCopy) {
  const int copy = ::dup(one());
  end_stream(one());
  EXPECT_FALSE(stream_counts(copy));
  std::byte byte = {};
  ssize_t size = -1;
  while (size < 0) size = ::recv(other(), &byte, 1, 0);
  EXPECT_EQ(size, 0);
  ::close(copy);
}

}  // namespace
}  // namespace vpfs::proxy
