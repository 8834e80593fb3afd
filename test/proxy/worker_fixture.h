#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "net/socket_options.h"
#include "proxy/config/config.h"
#include "proxy/dispatcher.h"
#include "proxy/shared_state.h"
#include "proxy/worker.h"
#include "proxy/worker_settings.h"
#include "test/proxy/counting_clock.h"
#include "test/support/io_messages.h"
#include "test/support/servers/wire_peer.h"

namespace vpfs::proxy {

// A worker with a real dispatcher. The test plays the clients and the data server, and time moves
// only when the test says so.
class WorkerTest : public ::testing::Test {
 protected:
  using Buffer = test::Buffer;
  using FakeDataServer = test::FakeDataServer;
  using WirePeer = test::WirePeer;

  // `limits`: the text of its section.
  static WorkerSettingsPtr settings_of(unsigned depth, const std::string& busy_poll = "0 s",
                                       const std::string& limits = "") {
    ConfigErrors errors("worker_test");
    Config config = parse_config(
        "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1', busy_poll: " + busy_poll +
            "}\n"
            "timeouts: {client_stall: 400 ms}\n"
            "scheduler: {policy: fifo, depth: {requests: " +
            std::to_string(depth) + "}}\n" + limits,
        errors);
    EXPECT_EQ(errors.to_string(), "");
    return std::make_shared<const WorkerSettings>(std::move(config));
  }

  WorkerTest() {
    // Both threads log. The log's library makes its logger with the first use, and ThreadSanitizer
    // does not see how the library guards that.
    (void)spdlog::default_logger();
    net::ignore_broken_pipes();
    shared_.hold = std::chrono::seconds(10);  // a silent request loses its slot much later
  }
  ~WorkerTest() override { stop(); }

  void stop() {
    if (!thread_.joinable()) return;
    worker_.stop();
    thread_.join();
    EXPECT_EQ(shared_.counters.ios_alive, 0U);
    EXPECT_EQ(shared_.counters.connections_open, 0U);
    EXPECT_EQ(dispatcher_.outstanding() + dispatcher_.queued(), 0U);
  }
  WirePeer new_client(const asio::ip::address& address = asio::ip::address_v4::loopback()) {
    WirePeer client = WirePeer::connect(front_.port());
    const WirePeer accepted = front_.accept();
    const int socket = ::dup(accepted.socket());
    EXPECT_FALSE(net::prepare_stream(socket));
    ++shared_.counters.connections_open;
    worker_.adopt(socket, net::Endpoint(address, 1));
    return client;
  }
  template <typename Is>
  [[nodiscard]] static bool wait_until(Is is) {
    for (int i = 0; i < 20'000 && !is(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return is();
  }
  // Waits until the stage has this many requests at the data server and in its queue.
  [[nodiscard]] bool comes_to(std::size_t outstanding, std::size_t queued) {
    return wait_until(
        [&] { return dispatcher_.outstanding() == outstanding && dispatcher_.queued() == queued; });
  }
  static Buffer read_of(unsigned tag) { return test::small_read_request(tag, {.size = 4096}); }
  // The data server receives the read and answers it.
  static void serve(WirePeer& server, WirePeer& client, unsigned tag) {
    const auto request = server.receive();
    ASSERT_TRUE(request);
    EXPECT_EQ(request->header.tag, tag);
    ASSERT_TRUE(server.send(test::small_read_response(tag, Buffer(4096))));
    const auto response = client.receive();
    ASSERT_TRUE(response);
    EXPECT_EQ(response->header.tag, tag);
  }

  static constexpr std::size_t kStalled = 1 << 20;
  // A client with a write that it sends no data for, and held reads with these tags that wait until
  // it does. A client at another address waits for the slot, and gets it.
  void stall(WirePeer& client, WirePeer& server, const std::vector<unsigned>& tags);

  FakeDataServer front_;
  std::optional<FakeDataServer> upstream_{std::in_place};
  CountingClock clock_;
  SharedState shared_{clock_, net::Endpoint(asio::ip::address_v4::loopback(), upstream_->port())};
  WorkerSettingsPtr settings_ = settings_of(1);
  Dispatcher dispatcher_{settings_, 1, [this](std::size_t) { worker_.wake_up(); }, clock_.now()};
  Worker worker_{0, shared_, dispatcher_};
  std::thread thread_{[this] { worker_.run(); }};
};

inline void WorkerTest::stall(WirePeer& client, WirePeer& server,
                              const std::vector<unsigned>& tags) {
  ASSERT_TRUE(
      client.send(test::io_request(100, {.type = orangefs::IoType::write, .size = kStalled})));
  ASSERT_TRUE(server.receive());
  ASSERT_TRUE(server.send(test::io_response(100, 0)));
  ASSERT_TRUE(client.receive());
  Buffer burst;
  for (const unsigned tag : tags) {
    const Buffer request = read_of(tag);
    burst.insert(burst.end(), request.begin(), request.end());
  }
  ASSERT_TRUE(client.send(burst));
  ASSERT_TRUE(comes_to(1, tags.size()));
  WirePeer other = new_client(asio::ip::make_address("127.0.0.2"));
  WirePeer other_server = upstream_->accept();
  ASSERT_TRUE(other.send(read_of(50)));
  ASSERT_TRUE(comes_to(1, tags.size() + 1));
  ASSERT_TRUE(wait_until([&] {
    clock_.advance(std::chrono::milliseconds(1));
    return shared_.counters.client_stalls == 1;
  }));
  serve(other_server, other, 50);
  ASSERT_TRUE(comes_to(0, 0));
}

}  // namespace vpfs::proxy
