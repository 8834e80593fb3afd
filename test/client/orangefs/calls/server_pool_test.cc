#include "client/orangefs/calls/server_pool.h"

#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/system_clock.h"
#include "net/endpoint.h"
#include "net/gather.h"
#include "test/support/run_task.h"

namespace vpfs::client {
namespace {

using namespace std::chrono_literals;
using test::run_task;
using Connected = Result<std::shared_ptr<ServerConnection>>;

// A port at which connects have no answer: nothing accepts, and the queue of those that wait is
// full.
class SilentPort {
 public:
  explicit SilentPort(asio::io_context& loop) : acceptor_(loop, asio::ip::tcp::v4()) {
    acceptor_.bind(net::Endpoint(asio::ip::address_v4::loopback(), 0));
    acceptor_.listen(0);
    for (int i = 0; i < 8; ++i) {
      net::Socket& socket = waiting_.emplace_back(loop);
      socket.open(asio::ip::tcp::v4());
      socket.native_non_blocking(true);
      const net::Endpoint to = endpoint();
      (void)::connect(socket.native_handle(), to.data(), static_cast<socklen_t>(to.size()));
    }
  }
  [[nodiscard]] net::Endpoint endpoint() const { return acceptor_.local_endpoint(); }

 private:
  asio::ip::tcp::acceptor acceptor_;
  std::vector<net::Socket> waiting_;
};

TEST(ServerPool, AllThatWaitForAnUnreachableServerLearnOfItAtOnce) {
  constexpr std::size_t kRequests = 20;
  constexpr Duration kPatience = 500ms;
  asio::io_context loop;
  const SystemClock clock;
  const SilentPort port(loop);
  ServerPool pool(loop.get_executor(), clock, kPatience, 1);
  pool.add(port.endpoint());
  const TimePoint start = clock.now();
  const auto connect_one = [&pool](std::size_t) { return pool.connect(0); };
  const std::vector<Connected> all = run_task(loop, net::gather(kRequests, kRequests, connect_one));
  for (const Connected& each : all) EXPECT_FALSE(each);
  EXPECT_GE(clock.now() - start, kPatience);
  EXPECT_LT(clock.now() - start, kRequests / 2 * kPatience);
}

TEST(ServerPool, AllThatWaitForAServerGetOneConnection) {
  asio::io_context loop;
  const SystemClock clock;
  asio::ip::tcp::acceptor acceptor(loop, net::Endpoint(asio::ip::address_v4::loopback(), 0));
  ServerPool pool(loop.get_executor(), clock, 60s, 1);
  pool.add(acceptor.local_endpoint());
  const auto connect_one = [&pool](std::size_t) { return pool.connect(0); };
  const std::vector<Connected> all = run_task(loop, net::gather(5, 5, connect_one));
  for (const Connected& each : all) {
    ASSERT_TRUE(each);
    EXPECT_EQ(*each, *all.front());
  }
  EXPECT_EQ(pool.ready(0), *all.front());
  pool.close();
  test::drain(loop);
}

}  // namespace
}  // namespace vpfs::client
