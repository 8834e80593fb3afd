#include "net/connecting.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "net/async.h"

namespace vpfs::net {
namespace {

bool becomes_writable(const Descriptor& socket) {
  pollfd state = {.fd = socket.get(), .events = POLLOUT, .revents = 0};
  return ::poll(&state, 1, 10'000) == 1;
}

TEST(Connecting, AServerThatListensIsReached) {
  asio::io_context context;
  asio::ip::tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  const Endpoint to = acceptor.local_endpoint();
  const Result<Descriptor> socket = begin_connect(to);
  ASSERT_TRUE(socket);
  ASSERT_TRUE(becomes_writable(*socket));
  EXPECT_TRUE(connect_outcome(socket->get(), to));
  const Result<Endpoint> there = remote_endpoint(socket->get());
  const Result<Endpoint> here = local_endpoint(socket->get());
  ASSERT_TRUE(there && here);
  EXPECT_EQ(*there, to);
  EXPECT_EQ(acceptor.accept().remote_endpoint(), *here);
}

TEST(Connecting, AServerThatDoesNotListenIsNamed) {
  asio::io_context context;
  Endpoint to;
  {
    const asio::ip::tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    to = acceptor.local_endpoint();
  }
  const Result<Descriptor> socket = begin_connect(to);
  Result<void> outcome;
  if (socket) {
    ASSERT_TRUE(becomes_writable(*socket));
    outcome = connect_outcome(socket->get(), to);
  } else {
    outcome = std::unexpected(socket.error());
  }
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "connect to " + to_string(to) + ": Connection refused");
}

TEST(Connecting, ASocketWithoutAPeerHasNoAddressOfOne) {
  EXPECT_FALSE(remote_endpoint(-1));
  EXPECT_FALSE(local_endpoint(-1));
}

}  // namespace
}  // namespace vpfs::net
