#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/system_clock.h"
#include "control/metrics/http_port.h"
#include "test/control/metrics/example_stats.h"

namespace vpfs::control {

using namespace std::chrono_literals;

// A client with blocking calls.
class BlockingClient {
 public:
  explicit BlockingClient(const net::Endpoint& port, int receive_buffer = 0,
                          in_addr_t from = INADDR_LOOPBACK)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    const sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(from)}};
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    const sockaddr_in to = {.sin_family = AF_INET,
                            .sin_port = htons(port.port()),
                            .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  BlockingClient(BlockingClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_) {}
  BlockingClient& operator=(BlockingClient&&) = delete;
  ~BlockingClient() {
    if (socket_ >= 0) ::close(socket_);
  }

  [[nodiscard]] bool connected() const { return connected_; }
  bool send(std::string_view text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  // Whether there is something to receive, or an end, within the time.
  [[nodiscard]] bool readable(std::chrono::milliseconds patience) const {
    pollfd poll_for = {.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&poll_for, 1, static_cast<int>(patience.count())) == 1;
  }
  // Some of what has come; "" at the end of the connection.
  [[nodiscard]] std::string receive(std::size_t most) const {
    std::string text(most, '\0');
    const ssize_t size = readable(10s) ? ::recv(socket_, text.data(), text.size(), 0) : -1;
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return text;
  }
  // Everything up to the end of the connection.
  [[nodiscard]] std::string receive_all() const {
    std::string text;
    char part[65536];
    while (readable(10s)) {
      const ssize_t size = ::recv(socket_, part, sizeof part, 0);
      if (size <= 0) return text;
      text.append(part, static_cast<std::size_t>(size));
    }
    ADD_FAILURE() << "the connection does not end";
    return text;
  }

 private:
  int socket_;
  bool connected_ = false;
};

class HttpPortTest : public ::testing::Test {
 protected:
  void start(HttpLimits limits = {}, std::size_t most_virtual_pfs = 1000) {
    HttpSource source = {.stats =
                             [this](auto answer) {
                               ++asked_;
                               const std::lock_guard lock(mutex_);
                               if (silent_) {
                                 kept_.push_back(std::move(answer));
                               } else {
                                 answer(stats_);
                               }
                             },
                         .not_ready =
                             [this] {
                               const std::lock_guard lock(mutex_);
                               return not_ready_;
                             },
                         .metrics = nullptr,
                         .ask =
                             [this](Envelope question, std::function<void(Envelope)> answer) {
                               const std::lock_guard lock(mutex_);
                               questions_.push_back(std::move(question));
                               std::this_thread::sleep_for(work_);
                               if (silent_) {
                                 answers_.push_back(std::move(answer));
                               } else {
                                 answer(reply_);
                               }
                             }};
    auto port = HttpPort::open({.address = "127.0.0.1:0", .most_virtual_pfs = most_virtual_pfs},
                               std::move(source), "1.2.3", clock_, limits);
    ASSERT_TRUE(port) << port.error().message;
    port_ = std::move(*port);
  }
  // The text does not fit into the sockets' buffers.
  void add_long_names() {
    for (int i = 0; i < 500; ++i) {
      VirtualPfs& made = *stats_.add_virtual_pfs();
      made.set_name("job-" + std::string(500, 'x') + std::to_string(i));
    }
  }
  [[nodiscard]] BlockingClient connect(int receive_buffer = 0) const {
    BlockingClient client(port_->local_endpoint(), receive_buffer);
    EXPECT_TRUE(client.connected());
    return client;
  }
  [[nodiscard]] std::string ask(const std::string& request) const {
    const BlockingClient client = connect();
    EXPECT_TRUE(client.send(request));
    return client.receive_all();
  }
  [[nodiscard]] std::string get(const std::string& path) const {
    return ask("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }

  const SystemClock clock_;
  std::mutex mutex_;
  StatsReply stats_ = test::example_stats();
  std::string not_ready_;
  bool silent_ = false;
  std::vector<std::function<void(StatsReply)>> kept_;   // answers that are still to be given
  std::vector<Envelope> questions_;                     // of the page
  std::chrono::milliseconds work_ = 0ms;                // that each of them takes
  Envelope reply_;                                      // to each of them
  std::vector<std::function<void(Envelope)>> answers_;  // that are still to be given
  std::atomic<int> asked_ = 0;
  std::unique_ptr<HttpPort> port_;
};

inline std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

inline std::size_t promised_by(const std::string& answer) {
  return std::stoul(answer.substr(answer.find("Content-Length: ") + 16));
}

}  // namespace vpfs::control
