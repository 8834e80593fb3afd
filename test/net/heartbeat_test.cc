#include "net/manager/heartbeat.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/support/comes_true.h"
#include "test/support/process.h"

namespace vpfs::net {
namespace {

using namespace std::chrono_literals;

// A service manager that wants to hear of this process every 200 ms.
class HeartbeatTest : public ::testing::Test {
 protected:
  HeartbeatTest() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const std::string path = (directory_.path() / "notify").string();
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
    ::setenv("WATCHDOG_USEC", "200000", 1);
  }
  ~HeartbeatTest() override {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
    ::close(socket_);
  }
  // How often it has heard that the program is alive since the last call.
  int beats() {
    int count = 0;
    std::array<char, 256> text = {};
    for (;;) {
      const ssize_t size = ::recv(socket_, text.data(), text.size(), MSG_DONTWAIT);
      if (size < 0) return count;
      if (std::string_view(text.data(), static_cast<std::size_t>(size)) == "WATCHDOG=1\n") ++count;
    }
  }

  // Waits for so many.
  bool beats_come(int wanted) {
    int heard = 0;
    return test::comes_true([&] { return (heard += beats()) >= wanted; });
  }

  const test::TemporaryDirectory directory_;
  const int socket_;
  asio::io_context context_;
};

TEST_F(HeartbeatTest, IsOfTheContextUnlessItBeatsByItself) {
  Heartbeat with(context_, [] { return true; });
  with.start();
  EXPECT_EQ(beats(), 1);
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(beats(), 0) << "the context does not turn";
  context_.run_for(200ms);
  EXPECT_GE(beats(), 2);
}

TEST_F(HeartbeatTest, GoesOnWithoutTheContextForAsLongAsTheOtherThreadsTurn) {
  std::atomic<bool> is_alive = true;
  Heartbeat without(
      context_, [&] { return is_alive.load(); }, false, Heartbeat::Beats::without_it);
  without.start();
  EXPECT_TRUE(beats_come(3));
  is_alive = false;
  std::this_thread::sleep_for(100ms);
  (void)beats();
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(beats(), 0);
  is_alive = true;
  EXPECT_TRUE(beats_come(1));
  without.end_beats();
  (void)beats();
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(beats(), 0);
}

}  // namespace
}  // namespace vpfs::net
