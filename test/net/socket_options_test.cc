#include "net/socket_options.h"

#include <array>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "test/net/socket_pair.h"

namespace vpfs::net {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Until the connection ends, or takes nothing more for that long.
std::error_code write_until_it_ends(Socket& socket, milliseconds patience) {
  const std::array<std::byte, 65536> bytes = {};
  const auto end = Clock::now() + patience;
  while (Clock::now() < end) {
    std::error_code error;
    (void)socket.write_some(asio::buffer(bytes), error);
    if (error && error != asio::error::would_block) return error;
    if (error) std::this_thread::sleep_for(milliseconds(5));
  }
  return {};
}

TEST(BoundDelivery, EndsAConnectionWhosePeerTakesNothing) {
  asio::io_context context;
  auto [one, other] = connected_pair(context);
  bound_delivery(one.native_handle(), milliseconds(50));
  EXPECT_EQ(write_until_it_ends(one, std::chrono::seconds(20)), asio::error::timed_out);
}

TEST(BoundDelivery, IsAtLeastAMillisecond) {
  asio::io_context context;
  auto [one, other] = connected_pair(context);
  bound_delivery(one.native_handle(), Duration::zero());
  int value = 0;
  socklen_t size = sizeof value;
  ASSERT_EQ(::getsockopt(one.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size), 0);
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace vpfs::net
