#include "proxy/worker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
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
#include "proxy/worker_settings.h"
#include "test/proxy/counting_clock.h"
#include "test/support/io_messages.h"
#include "test/support/servers/wire_peer.h"

// Tests of a worker with a real dispatcher. The test plays the clients and the data server, and
// time moves only when the test says so.
namespace vpfs::proxy {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::FakeDataServer;
using test::WirePeer;

class WorkerTest : public ::testing::Test {
 protected:
  static WorkerSettingsPtr settings_of(unsigned depth, const std::string& busy_poll = "0 s") {
    ConfigErrors errors("worker_test");
    Config config = parse_config(
        "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1', busy_poll: " + busy_poll +
            "}\n"
            "timeouts: {client_stall: 400 ms}\n"
            "scheduler: {policy: fifo, depth: {requests: " +
            std::to_string(depth) + "}}\n",
        errors);
    EXPECT_EQ(errors.to_string(), "");
    return std::make_shared<const WorkerSettings>(std::move(config));
  }

  WorkerTest() {
    // Both threads log. The log's library makes its logger with the first use, and ThreadSanitizer
    // does not see how the library guards that.
    (void)spdlog::default_logger();
    net::ignore_broken_pipes();
    shared_.hold = 10s;  // a silent request loses its slot much later
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
    for (int i = 0; i < 20'000 && !is(); ++i) std::this_thread::sleep_for(1ms);
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

TEST_F(WorkerTest, ARequestWaitsForTheSlotOfTheOneBeforeIt) {
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  ASSERT_TRUE(client.send(read_of(1)));
  ASSERT_TRUE(comes_to(1, 0));
  ASSERT_TRUE(client.send(read_of(2)));
  ASSERT_TRUE(comes_to(1, 1));
  serve(server, client, 1);
  ASSERT_TRUE(comes_to(1, 0));
  serve(server, client, 2);
  ASSERT_TRUE(comes_to(0, 0));
}

TEST_F(WorkerTest, SlotsGoFromSessionToSession) {
  WirePeer one = new_client();
  WirePeer server_of_one = upstream_->accept();
  WirePeer two = new_client();
  WirePeer server_of_two = upstream_->accept();
  ASSERT_TRUE(one.send(read_of(1)));
  ASSERT_TRUE(comes_to(1, 0));
  ASSERT_TRUE(two.send(read_of(2)));
  ASSERT_TRUE(comes_to(1, 1));
  EXPECT_FALSE(server_of_two.readable(0ms));
  serve(server_of_one, one, 1);
  serve(server_of_two, two, 2);
}

TEST_F(WorkerTest, AConnectionThatEndsGivesItsSlotToOthers) {
  WirePeer one = new_client();
  WirePeer server_of_one = upstream_->accept();
  ASSERT_TRUE(one.send(read_of(1)));
  ASSERT_TRUE(one.send(read_of(2)));
  ASSERT_TRUE(comes_to(1, 1));
  WirePeer two = new_client();
  WirePeer server_of_two = upstream_->accept();
  ASSERT_TRUE(two.send(read_of(3)));
  ASSERT_TRUE(comes_to(1, 2));
  one.reset();
  serve(server_of_two, two, 3);
  EXPECT_TRUE(server_of_one.receive());
  EXPECT_TRUE(server_of_one.closed_by_peer());
  EXPECT_TRUE(wait_until([this] { return shared_.counters.connections_open == 1; }));
  ASSERT_TRUE(comes_to(0, 0));
}

TEST_F(WorkerTest, WhatIsHeldUpToItsDeadlineIsRefusedAndNotForwarded) {
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  ASSERT_TRUE(client.send(read_of(1)));
  ASSERT_TRUE(client.send(read_of(2)));
  ASSERT_TRUE(comes_to(1, 1));
  clock_.advance(shared_.hold.load() - 1ns);
  const std::uint64_t reads = clock_.reads();
  ASSERT_TRUE(wait_until([&] { return clock_.reads() > reads + 3; })) << "no sweeps";
  EXPECT_EQ(shared_.counters.requests_refused, 0U);
  clock_.advance(1ns);
  const auto refusal = client.receive();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->header.tag, 2U);
  EXPECT_EQ(shared_.counters.requests_refused, 1U);
  ASSERT_TRUE(comes_to(1, 0));
  serve(server, client, 1);
  ASSERT_TRUE(comes_to(0, 0));
  EXPECT_FALSE(server.readable(0ms));
}

// A request is released in the event in which its deadline passes.
TEST_F(WorkerTest, ASlotThatComesTooLateIsNotUsed) {
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  ASSERT_TRUE(client.send(read_of(1)));
  ASSERT_TRUE(client.send(read_of(2)));
  ASSERT_TRUE(comes_to(1, 1));
  ASSERT_TRUE(server.receive());
  clock_.advance(shared_.hold.load());
  ASSERT_TRUE(server.send(test::small_read_response(1, Buffer(4096))));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(client.receive());
  EXPECT_EQ(shared_.counters.requests_refused, 1U);
  ASSERT_TRUE(comes_to(0, 0));
  EXPECT_FALSE(server.readable(0ms));
}

// A client with a write that it sends no data for, and held reads with these tags that wait until
// it does. A client at another address waits for the slot, and gets it.
void WorkerTest::stall(WirePeer& client, WirePeer& server, const std::vector<unsigned>& tags) {
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
    clock_.advance(1ms);
    return shared_.counters.client_stalls == 1;
  }));
  serve(other_server, other, 50);
  ASSERT_TRUE(comes_to(0, 0));
}

// The requests of one event share their arrival time, so the time gives no order.
TEST_F(WorkerTest, RequestsThatAStallTakesBackKeepTheirOrder) {
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  stall(client, server, {9, 7, 8, 5});
  // The client sends its data after all.
  ASSERT_TRUE(client.send(test::data_message(100, Buffer(kStalled))));
  ASSERT_TRUE(server.receive());
  ASSERT_TRUE(server.send(test::write_completion(100, kStalled)));
  ASSERT_TRUE(client.receive());
  for (const unsigned tag : {9U, 7U, 8U, 5U}) serve(server, client, tag);
}

TEST_F(WorkerTest, BypassForwardsWhatWaitsAndWhatComes) {
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  for (unsigned tag = 1; tag <= 3; ++tag) ASSERT_TRUE(client.send(read_of(tag)));
  ASSERT_TRUE(comes_to(1, 2));
  dispatcher_.bypass(true, clock_.now());
  ASSERT_TRUE(comes_to(3, 0));
  ASSERT_TRUE(client.send(read_of(4)));
  ASSERT_TRUE(comes_to(4, 0));
  dispatcher_.bypass(false, clock_.now());
  ASSERT_TRUE(client.send(read_of(5)));
  ASSERT_TRUE(comes_to(4, 1)) << "the first one still has its slot";
  for (unsigned tag = 1; tag <= 5; ++tag) serve(server, client, tag);
  ASSERT_TRUE(comes_to(0, 0));
}

TEST_F(WorkerTest, BypassReachesWhatWaitsForAClientThatStalls) {
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  stall(client, server, {9, 7, 8, 5});
  dispatcher_.bypass(true, clock_.now());
  ASSERT_TRUE(comes_to(4, 0));
  for (const unsigned tag : {9U, 7U, 8U, 5U}) serve(server, client, tag);
  EXPECT_EQ(shared_.counters.client_stalls, 1U);
  // The stalled write ends in the proxy's hands after the bypass.
  dispatcher_.bypass(false, clock_.now());
  ASSERT_TRUE(client.send(test::data_message(100, Buffer(kStalled))));
  ASSERT_TRUE(server.receive());
  ASSERT_TRUE(server.send(test::write_completion(100, kStalled)));
  ASSERT_TRUE(client.receive());
  ASSERT_TRUE(comes_to(0, 0));
}

TEST_F(WorkerTest, BypassForwardsNothingAfterItsDeadline) {
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  stall(client, server, {9});
  clock_.advance(shared_.hold.load());
  dispatcher_.bypass(true, clock_.now());
  const auto refusal = client.receive();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->header.tag, 9U);
  EXPECT_EQ(shared_.counters.requests_refused, 1U);
  ASSERT_TRUE(comes_to(0, 0));
  EXPECT_FALSE(server.readable(0ms));
}

TEST_F(WorkerTest, AReloadLetsGoWhatMayGoNow) {
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  for (unsigned tag = 1; tag <= 4; ++tag) ASSERT_TRUE(client.send(read_of(tag)));
  ASSERT_TRUE(comes_to(1, 3));
  dispatcher_.use(settings_of(3)->config, clock_.now());
  ASSERT_TRUE(comes_to(3, 1));
}

// Each configuration comes with a reload. Between requests the worker polls or sleeps.
TEST_F(WorkerTest, PollsBeforeItSleepsAsItIsConfigured) {
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  const auto polls = [this] {
    return shared_.counters.polls_found.load() + shared_.counters.polls_in_vain.load();
  };
  EXPECT_EQ(polls(), 0U);
  for (const char* longest : {"1 ms", "0 s", "5 us", "0 s"}) {
    dispatcher_.use(settings_of(1, longest)->config, clock_.now());
    for (unsigned tag = 1; tag <= 20; ++tag) {  // the first one brings the settings
      ASSERT_TRUE(client.send(read_of(tag)));
      ASSERT_TRUE(client.send(read_of(tag + 100)));
      serve(server, client, tag);
      serve(server, client, tag + 100);
    }
    ASSERT_TRUE(comes_to(0, 0));
    const std::uint64_t before = polls();
    ASSERT_TRUE(client.send(read_of(200)));
    serve(server, client, 200);
    ASSERT_TRUE(comes_to(0, 0));
    if (longest == std::string_view("0 s")) {
      EXPECT_EQ(polls(), before);
    } else {
      EXPECT_GT(before, 0U);
    }
  }
  EXPECT_GT(shared_.counters.polls_found, 0U);
}

TEST_F(WorkerTest, LooksAfterItsDeadlinesWhileItPolls) {
  dispatcher_.use(settings_of(1, "1 ms")->config, clock_.now());
  WirePeer client = new_client();
  const std::uint64_t before = worker_.turns();
  EXPECT_TRUE(wait_until([&] { return worker_.turns() > before + 5; }));
}

TEST_F(WorkerTest, WithoutADataServerAClientIsTurnedAway) {
  upstream_.reset();
  WirePeer client = new_client();
  EXPECT_TRUE(client.closed_by_peer());
  EXPECT_EQ(shared_.counters.upstream_failures, 1U);
  EXPECT_TRUE(wait_until([this] { return shared_.counters.connections_open == 0; }));
}

TEST_F(WorkerTest, StoppedItClosesAllConnections) {
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  ASSERT_TRUE(client.send(read_of(1)));
  ASSERT_TRUE(client.send(read_of(2)));
  ASSERT_TRUE(comes_to(1, 1));
  stop();
  EXPECT_TRUE(client.closed_by_peer());
  EXPECT_TRUE(server.closed_by_peer());
}

// Arrival, turn and release of a whole burst use one reading of the clock. Sweeps read it as well,
// so the bound is above one.
TEST_F(WorkerTest, ABurstOfRequestsReadsTheClockOnceForEachEvent) {
  constexpr unsigned kRequests = 200;
  dispatcher_.use(settings_of(kRequests)->config, clock_.now());
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  Buffer burst;
  for (unsigned tag = 1; tag <= kRequests; ++tag) {
    const Buffer request = read_of(tag);
    burst.insert(burst.end(), request.begin(), request.end());
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t reads = clock_.reads();
  ASSERT_TRUE(client.send(burst));
  EXPECT_EQ(server.receive_bytes(burst.size()), burst);
  const auto sweeps = static_cast<std::uint64_t>((std::chrono::steady_clock::now() - begin) / 50ms);
  // An event takes at most 32 messages or 16 KiB.
  EXPECT_LE(clock_.reads() - reads, kRequests / 10 + sweeps + 1);
}

TEST_F(WorkerTest, ConnectionsAreListedWhileOthersComeAndGo) {
  std::vector<WirePeer> clients;
  std::vector<WirePeer> servers;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(new_client());
    servers.push_back(upstream_->accept());
  }
  ASSERT_TRUE(clients[0].send(read_of(1)));
  ASSERT_TRUE(comes_to(1, 0));
  serve(servers[0], clients[0], 1);
  std::atomic<int> listed = 0;
  std::atomic<std::size_t> fewest = 1000;
  std::atomic<std::size_t> shown = 0;
  for (int round = 0; round < 50; ++round) {
    worker_.list_connections([&](std::vector<ShownConnection> connections) {
      fewest = std::min<std::size_t>(fewest, connections.size());
      for (const ShownConnection& each : connections) shown += each.rows.size();
      ++listed;
    });
    clients.pop_back();
    clients.push_back(new_client());
    servers.push_back(upstream_->accept());
  }
  ASSERT_TRUE(wait_until([&] { return listed == 50; }));
  EXPECT_GE(fewest, 100U);
  EXPECT_GT(shown, 0U) << "one has sent a request";
}

TEST_F(WorkerTest, AListThatIsAskedForAtItsEndHarmsNothing) {
  std::vector<WirePeer> clients;
  std::vector<WirePeer> servers;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(new_client());
    servers.push_back(upstream_->accept());
  }
  auto answers = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < 20; ++i) {
    worker_.list_connections([answers](const auto&) { ++*answers; });
  }
  stop();
  worker_.list_connections([answers](const auto&) { ++*answers; });
  EXPECT_LE(*answers, 20);
}

}  // namespace
}  // namespace vpfs::proxy
