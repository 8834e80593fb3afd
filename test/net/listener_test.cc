#include "net/listener.h"

#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <asio/read.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/congestion/congestion_control.h"
#include "net/endpoint.h"
#include "net/socket_options.h"
#include "net/splice_pipe.h"
#include "test/net/few_descriptors.h"
#include "test/net/socket_pair.h"
#include "test/support/odd_files.h"

namespace vpfs::net {
namespace {

TEST(Endpoint, ParsesAddressesAndNamesAndNamesWhatIsWrong) {
  EXPECT_EQ(to_string(*resolve_endpoint("127.0.0.1:3334")), "127.0.0.1:3334");
  EXPECT_EQ(to_string(*resolve_endpoint("[::1]:80")), "[::1]:80");
  EXPECT_EQ(resolve_endpoint("localhost:5")->port(), 5);
  for (const char* bad : {"127.0.0.1", ":80", "host:", "127.0.0.1:65536", "127.0.0.1:x"}) {
    const auto result = resolve_endpoint(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_NE(result.error().message.find(bad), std::string::npos);
  }
}

TEST(Endpoint, MappedIpv4IsIpv4) {
  EXPECT_EQ(to_string(unmapped(*resolve_endpoint("[::ffff:10.0.0.1]:5"))), "10.0.0.1:5");
  EXPECT_EQ(to_string(unmapped(*resolve_endpoint("[fd00::1]:5"))), "[fd00::1]:5");
  EXPECT_EQ(to_string(unmapped(*resolve_endpoint("10.0.0.1:5"))), "10.0.0.1:5");
}

TEST(Endpoint, KnowsTheAddressesOfThisHost) {
  for (const char* own : {"127.0.0.1", "127.9.8.7", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_own_address(asio::ip::make_address(own))) << own;
  }
  // An address from a block for documentation.
  for (const char* other : {"192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"}) {
    EXPECT_FALSE(is_own_address(asio::ip::make_address(other))) << other;
  }
}

TEST(Listener, AllIpv6AddressesServeIpv4Too) {
  asio::io_context context;
  auto listener = Listener::open(context, *resolve_endpoint("[::]:0"));
  if (!listener) GTEST_SKIP() << listener.error().message;
  std::vector<Socket> accepted;
  listener->start([&](Socket socket) { accepted.push_back(std::move(socket)); });
  Socket client(context);
  client.connect({asio::ip::address_v4::loopback(), listener->local_endpoint().port()});
  while (accepted.empty()) context.run_one();
  const Endpoint peer = accepted[0].remote_endpoint();
  EXPECT_TRUE(peer.address().is_v6());
  EXPECT_EQ(unmapped(peer), client.local_endpoint());
}

TEST(SocketOptions, ACongestionControlIsKnownOrToldWithThoseThatAre) {
  EXPECT_FALSE(congestion_control_problem("reno"));
  const auto problem = congestion_control_problem("qubic");
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->find("'qubic'"), std::string::npos);
  EXPECT_NE(problem->find("reno"), std::string::npos) << *problem;
}

TEST(LocalCongestion, IsThatOfConnectionsWithinTheHost) {
  const auto congestion_of = [](Socket& socket) {
    std::array<char, 64> name = {};
    ::socklen_t size = name.size();
    EXPECT_EQ(::getsockopt(socket.native_handle(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size),
              0);
    return std::string(name.data());
  };
  asio::io_context context;
  auto listener = Listener::open(context, *resolve_endpoint("[::]:0"));
  if (!listener) GTEST_SKIP() << listener.error().message;
  listener->start([](Socket) {});
  Socket client(context);
  client.open(asio::ip::tcp::v4());
  const std::string before = congestion_of(client);
  choose_local_congestion(client.native_handle(), "reno");
  EXPECT_EQ(congestion_of(client), before) << "it is not connected";
  client.connect({asio::ip::address_v4::loopback(), listener->local_endpoint().port()});
  choose_local_congestion(client.native_handle(), "qubic");
  EXPECT_EQ(congestion_of(client), before) << "the kernel does not have it";
  choose_local_congestion(client.native_handle(), "reno");
  EXPECT_EQ(congestion_of(client), "reno");
}

TEST(Listener, AnAddressInUseIsAnErrorThatNamesIt) {
  asio::io_context context;
  auto first = Listener::open(context, *resolve_endpoint("127.0.0.1:0"));
  ASSERT_TRUE(first);
  const auto second = Listener::open(context, first->local_endpoint());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(to_string(first->local_endpoint())), std::string::npos);
}

TEST(Listener, HandsOverConnectionsUntilClosed) {
  asio::io_context context;
  auto listener = Listener::open(context, *resolve_endpoint("127.0.0.1:0"));
  ASSERT_TRUE(listener);
  std::vector<Socket> accepted;
  listener->start([&](Socket socket) { accepted.push_back(std::move(socket)); });
  Socket one(context);
  Socket two(context);
  one.connect(listener->local_endpoint());
  two.connect(listener->local_endpoint());
  while (accepted.size() < 2) context.run_one();
  asio::ip::tcp::no_delay option;
  accepted[0].get_option(option);
  EXPECT_TRUE(option.value());
  listener->close();
  context.restart();
  context.run();  // ends: nothing is left to wait for
}

// A client connects in the moment in which another process takes over.
TEST(Listener, LeavesWhatItHasNotHandedOverToAnotherOneOfTheSameSocket) {
  asio::io_context context;
  auto first = Listener::open(context, *resolve_endpoint("127.0.0.1:0"));
  ASSERT_TRUE(first);
  Descriptor same(::dup(first->native_handle()));
  Socket client(context);
  client.connect(first->local_endpoint());
  first->start([](const Socket&) { ADD_FAILURE() << "it is closed"; });
  first->close();
  auto second = Listener::open(context, *resolve_endpoint("127.0.0.1:0"), std::move(same));
  ASSERT_TRUE(second);
  std::vector<Socket> accepted;
  second->start([&](Socket socket) { accepted.push_back(std::move(socket)); });
  while (accepted.empty() && context.run_one_for(std::chrono::seconds(10)) > 0) {
  }
  ASSERT_EQ(accepted.size(), 1U);
  EXPECT_EQ(accepted[0].remote_endpoint(), client.local_endpoint());
}

TEST(Listener, WithoutDescriptorsItClosesNewConnectionsAndGoesOn) {
  asio::io_context context;
  auto listener = Listener::open(context, *resolve_endpoint("127.0.0.1:0"));
  ASSERT_TRUE(listener);
  std::vector<Socket> accepted;
  listener->start([&](Socket socket) { accepted.push_back(std::move(socket)); });
  Socket refused(context);
  refused.open(asio::ip::tcp::v4());
  const int next = ::dup(0);
  ::close(next);
  {
    const test::FewDescriptors few(static_cast<rlim_t>(next));
    refused.connect(listener->local_endpoint());
    std::array<char, 1> byte = {};
    std::optional<std::error_code> ended;
    refused.async_read_some(asio::buffer(byte),
                            [&](std::error_code error, std::size_t) { ended = error; });
    while (!ended) context.run_one();
    EXPECT_TRUE(*ended);
    EXPECT_TRUE(accepted.empty());
  }
  Socket welcome(context);
  welcome.connect(listener->local_endpoint());
  while (accepted.empty()) context.run_one();
  listener->close();
}

TEST(SplicePipe, MovesBytesFromSocketToSocket) {
  asio::io_context context;
  auto [from, into_pipe] = connected_pair(context);
  auto [out_of_pipe, to] = connected_pair(context);
  PipePool pool;
  auto pipe = pool.take();
  ASSERT_TRUE(pipe);
  const std::string sent(50'000, 'x');
  asio::write(from, asio::buffer(sent));
  std::size_t moved = 0;
  while (moved < sent.size()) {
    const ssize_t in = pipe->fill_from(into_pipe.native_handle(), sent.size() - moved);
    if (in <= 0) continue;
    EXPECT_EQ(pipe->size(), static_cast<std::size_t>(in));
    while (pipe->size() > 0) ASSERT_GT(pipe->drain_to(out_of_pipe.native_handle()), 0);
    moved += static_cast<std::size_t>(in);
  }
  std::string received(sent.size(), ' ');
  to.non_blocking(false);
  asio::read(to, asio::buffer(received));
  EXPECT_EQ(received, sent);
  EXPECT_EQ(pipe->fill_from(into_pipe.native_handle(), 10), -1);
  EXPECT_EQ(errno, EAGAIN);
  const net::SplicePipe* const same = pipe.get();
  pool.give_back(std::move(pipe));
  EXPECT_EQ(pool.take().get(), same);
}

TEST(SplicePipe, AReceiverThatIsGoneIsAnErrorNotASignal) {
  ignore_broken_pipes();
  asio::io_context context;
  auto [from, into_pipe] = connected_pair(context);
  auto [out_of_pipe, to] = connected_pair(context);
  const auto pipe = SplicePipe::make();
  asio::write(from, asio::buffer(std::string(1000, 'x')));
  while (pipe->fill_from(into_pipe.native_handle(), 500) < 0) {
  }
  to.set_option(asio::socket_base::linger(true, 0));
  to.close();
  ASSERT_EQ(pipe->drain_to(out_of_pipe.native_handle()), -1);
  EXPECT_EQ(errno, ECONNRESET);
  ASSERT_EQ(pipe->drain_to(out_of_pipe.native_handle()), -1);
  EXPECT_EQ(errno, EPIPE);
}

// The kernel gives a user that has too many pages in pipes only small ones, which are slower than a
// copy. Root is not limited.
TEST(SplicePipe, ThereAreNoneThatAreTooSmall) {
  std::ifstream limit("/proc/sys/fs/pipe-user-pages-soft");
  std::size_t pages = 0;
  if (!(limit >> pages) || pages == 0 || pages > 100'000) GTEST_SKIP() << "there is no limit here";
  const test::AsNobody nobody;
  PipePool pool;
  std::vector<std::unique_ptr<SplicePipe>> pipes;
  while (pipes.size() < 500) {
    std::unique_ptr<SplicePipe> pipe = pool.take();
    if (pipe == nullptr) break;
    pipes.push_back(std::move(pipe));
  }
  if (pipes.empty()) GTEST_SKIP() << "others have all pages";
  EXPECT_LT(pipes.size(), 500U);
  asio::io_context context;
  auto [from, into_pipe] = connected_pair(context);
  asio::write(from, asio::buffer(std::string(50'000, 'x')));
  std::size_t moved = 0;
  for (const auto& pipe : pipes) {
    if (const ssize_t in = pipe->fill_from(into_pipe.native_handle(), 50'000); in > 0) {
      moved += static_cast<std::size_t>(in);
    }
  }
  EXPECT_EQ(moved, 50'000U);
  pipes.clear();
  EXPECT_EQ(pool.take(), nullptr) << "it is not tried each time";
  int takes = 0;
  while (pool.take() == nullptr && takes < 1000) ++takes;
  EXPECT_LT(takes, 1000);
}

}  // namespace
}  // namespace vpfs::net
