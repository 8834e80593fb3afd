#include "proxy/pump/unread.h"

#include <array>
#include <optional>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "test/net/socket_pair.h"

namespace vpfs::proxy {
namespace {

class UnreadTest : public ::testing::Test {
 protected:
  UnreadTest() { count_unread(here()); }

  [[nodiscard]] int here() { return pair_.first.native_handle(); }
  void send(std::size_t size) {
    const std::array<char, 100> bytes = {};
    ASSERT_EQ(::send(pair_.second.native_handle(), bytes.data(), size, 0),
              static_cast<ssize_t>(size));
    pollfd state = {.fd = here(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&state, 1, 10'000), 1);
  }
  ssize_t take(std::size_t size, int flags = 0) {
    return receive(here(), buffer_.data(), size, flags | MSG_DONTWAIT, unread_);
  }

  asio::io_context context_;
  std::pair<net::Socket, net::Socket> pair_ = net::connected_pair(context_);
  std::array<char, 100> buffer_ = {};
  std::optional<std::size_t> unread_;
};

TEST_F(UnreadTest, EachReceiveSaysWhatIsLeft) {
  send(100);
  EXPECT_EQ(take(30), 30);
  EXPECT_EQ(unread_, 70U);
  EXPECT_EQ(take(10, MSG_PEEK), 10);
  EXPECT_EQ(unread_, 70U);
  EXPECT_EQ(receive(here(), nullptr, 20, MSG_TRUNC | MSG_DONTWAIT, unread_), 20);
  EXPECT_EQ(unread_, 50U);
  EXPECT_EQ(take(100), 50);
  EXPECT_EQ(unread_, 0U);
  EXPECT_EQ(take(100), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(unread_);
}

TEST_F(UnreadTest, TheEndCountsAsSomethingLeft) {
  send(10);
  pair_.second.close();
  pollfd state = {.fd = here(), .events = POLLRDHUP, .revents = 0};
  ASSERT_EQ(::poll(&state, 1, 10'000), 1);
  EXPECT_EQ(take(100), 10);
  EXPECT_GT(unread_, 0U);
  EXPECT_EQ(take(100), 0);
}

TEST_F(UnreadTest, WithoutBeingAskedTheKernelDoesNotSay) {
  std::swap(pair_.first, pair_.second);
  send(10);
  EXPECT_EQ(take(5), 5);
  EXPECT_FALSE(unread_);
}

}  // namespace
}  // namespace vpfs::proxy
