#include "proxy/worker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "test/proxy/worker_fixture.h"
#include "test/support/io_messages.h"

namespace vpfs::proxy {
namespace {

using namespace std::chrono_literals;

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
