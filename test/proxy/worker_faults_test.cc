#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/saved/saved_state.h"
#include "net/descriptor.h"
#include "protocols/beegfs/message_header.h"
#include "protocols/beegfs/types.h"
#include "proxy/worker.h"
#include "test/proxy/worker_fixture.h"
#include "test/support/io_messages.h"

// Peers that break the protocol, and connections that end at odd moments.
namespace vpfs::proxy {
namespace {

using namespace std::chrono_literals;

constexpr stage::VirtualPfsId kDefault{.app = AppId{0}};

class WorkerFaults : public WorkerTest {
 protected:
  // Still serves others.
  void expect_served() {
    WirePeer client = new_client();
    WirePeer server = upstream_->accept();
    ASSERT_TRUE(client.send(read_of(1)));
    serve(server, client, 1);
  }
  // A session as another process has packed it, with these messages held.
  [[nodiscard]] SavedState packed(const std::vector<Buffer>& held = {}) const {
    SavedState state;
    state.set("protocol", "orangefs");
    state.set("has_joined", std::uint64_t{0});
    for (const char* const part : {"conversation", "to_server", "to_client"}) {
      (void)state.add_list(part).emplace_back();
    }
    SavedState::Values requests;
    for (const Buffer& message : held) {
      SavedState& each = requests.emplace_back();
      each.set("arrival", static_cast<std::uint64_t>(clock_.now().time_since_epoch().count()));
      each.set("message",
               std::string(reinterpret_cast<const char*>(message.data()), message.size()));
    }
    state.set("held", std::move(requests));
    return state;
  }
  // The worker has the middle of this connection, and so has the test, as another process would.
  struct Shared {
    WirePeer client;
    WirePeer accepted;
    WirePeer to_server;
    WirePeer server;
  };
  [[nodiscard]] Shared connect() {
    WirePeer client = WirePeer::connect(front_.port());
    WirePeer accepted = front_.accept();
    WirePeer to_server = WirePeer::connect(upstream_->port());
    WirePeer server = upstream_->accept();
    return {.client = std::move(client),
            .accepted = std::move(accepted),
            .to_server = std::move(to_server),
            .server = std::move(server)};
  }
  void give(const Shared& shared, SavedState state) {
    worker_.take_late(std::move(state), net::Descriptor(::dup(shared.accepted.socket())),
                      net::Descriptor(::dup(shared.to_server.socket())));
    ASSERT_TRUE(wait_until([this] { return shared_.counters.connections_open == 1; }));
  }
};

// The bytes of a message under the tag of a held request begin to come. When the request's deadline
// passes, the message is half way.
TEST_F(WorkerFaults, AnAnswerToAHeldRequestEndsOnlyThatConnection) {
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  ASSERT_TRUE(client.send(read_of(1)));
  ASSERT_TRUE(client.send(read_of(2)));
  ASSERT_TRUE(comes_to(1, 1));
  ASSERT_TRUE(server.receive());
  Buffer answer = test::small_read_response(2, Buffer(100'000));
  std::fill(answer.begin() + 24, answer.begin() + 40, std::byte{0});
  answer.resize(124);
  ASSERT_TRUE(server.send(answer));
  ASSERT_TRUE(wait_until([this] { return shared_.counters.framing_errors == 1; }));
  clock_.advance(shared_.hold.load());
  EXPECT_TRUE(client.closed_by_peer());
  expect_served();
}

// A client that is refused too often is read no more for a moment. What it has sent by then ends
// with garbage, which is read in the same event in which others of its requests are refused.
TEST_F(WorkerFaults, GarbageBehindARefusedFlood) {
  dispatcher_.use(settings_of(1, "0 s", "limits: {held_requests: 2}\n")->config, clock_.now());
  for (unsigned requests = 70; requests < 220; requests += 3) {
    WirePeer client = new_client();
    WirePeer server = upstream_->accept();
    Buffer burst;
    for (unsigned tag = 1; tag <= requests; ++tag) {
      const Buffer request = read_of(tag);
      burst.insert(burst.end(), request.begin(), request.end());
    }
    burst.insert(burst.end(), 64, std::byte{0xee});
    ASSERT_TRUE(client.send(burst));
    ASSERT_TRUE(wait_until([&] {
      clock_.advance(1ms);
      return shared_.counters.connections_open == 0;
    })) << requests;
  }
  EXPECT_GT(shared_.counters.requests_refused, 1000U);
  expect_served();
}

// The requests of a slow application go in turn. One that bypass has forwarded must not keep the
// others waiting for a turn that it does not take.
TEST_F(WorkerFaults, ARequestThatBypassForwardsLeavesItsPlaceInTheOrderOfTurns) {
  const auto loopback = asio::ip::address_v4::loopback();
  const TimePoint now = clock_.now();
  (void)shared_.stalls.take(kDefault, loopback, now - 1s, now, 400ms);
  WirePeer one = new_client();
  WirePeer server_of_one = upstream_->accept();
  WirePeer two = new_client();
  WirePeer server_of_two = upstream_->accept();
  ASSERT_TRUE(one.send(read_of(1)));
  ASSERT_TRUE(server_of_one.receive());
  ASSERT_TRUE(two.send(read_of(2)));
  ASSERT_FALSE(server_of_two.readable(100ms)) << "it has to wait for its turn";
  dispatcher_.bypass(true, clock_.now());
  ASSERT_TRUE(server_of_two.receive());
  dispatcher_.bypass(false, clock_.now());
  ASSERT_TRUE(server_of_one.send(test::small_read_response(1, Buffer(4096))));
  ASSERT_TRUE(one.receive());
  ASSERT_TRUE(one.send(read_of(3)));
  EXPECT_TRUE(wait_until([&] {
    clock_.advance(1ms);
    return server_of_one.readable(0ms) || clock_.now() > now + 5s;
  }));
  EXPECT_TRUE(server_of_one.readable(0ms));
}

// The client went while its connection was on its way to this process. It may have repeated the
// write elsewhere, so this one must not arrive.
TEST_F(WorkerFaults, ARequestThatComesLateFromAClientThatIsGoneIsNotForwarded) {
  Shared shared = connect();
  const Buffer request =
      test::small_write_request(7, {.type = orangefs::IoType::write, .size = 4096}, Buffer(4096));
  shared.client.close();
  worker_.take_late(packed({request}), net::Descriptor(::dup(shared.accepted.socket())),
                    net::Descriptor(::dup(shared.to_server.socket())));
  EXPECT_FALSE(shared.server.receive()) << "an abandoned write was forwarded";
  EXPECT_TRUE(wait_until([this] { return shared_.counters.connections_open == 0; }));
}

// A server has one thread wait for the rest. It gives that up after 5 s, and never closes the
// connection.
TEST_F(WorkerFaults, ALongMessageOfABeegfsClientThatStopsHalfWayEndsItsConnection) {
  Config config = settings_->config;
  config.protocol = "beegfs";
  dispatcher_.use(config, clock_.now());
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  const Buffer message =
      beegfs::make_message({.type = beegfs::MessageType::set_exceeded_quota}, Buffer(300'000));
  const auto send = [&](std::size_t from, std::size_t to) {
    ASSERT_TRUE(client.send(std::span(message).subspan(from, to - from)));
    ASSERT_EQ(server.receive_bytes(to - from).size(), to - from);
  };
  const auto is_watched = [&] {
    const std::uint64_t reads = clock_.reads();
    return wait_until([&] { return clock_.reads() > reads + 3; });
  };
  send(0, 150'000);
  ASSERT_TRUE(is_watched());
  clock_.advance(3900ms);
  ASSERT_TRUE(is_watched());
  send(150'000, 250'000);
  ASSERT_TRUE(is_watched());
  clock_.advance(3900ms);
  send(250'000, 250'001);
  ASSERT_TRUE(is_watched());
  EXPECT_EQ(shared_.counters.connections_open, 1U);
  clock_.advance(100ms);
  EXPECT_TRUE(server.closed_by_peer());
  EXPECT_TRUE(client.closed_by_peer());
}

// A request counts for what it claims, up to a bound, and then for what it moves.
TEST_F(WorkerFaults, ARequestThatClaimsTooMuchKeepsNoOthersOfItsVirtualPfsWaiting) {
  Config config = settings_of(16)->config;
  config.policy = "sfq";
  config.virtual_pfs = {{.name = "default", .share = {.rate = {std::uint64_t{1} << 30}}}};
  dispatcher_.use(config, clock_.now());
  WirePeer liar = new_client();
  WirePeer server_of_liar = upstream_->accept();
  ASSERT_TRUE(liar.send(
      test::io_request(1, {.type = orangefs::IoType::write, .size = std::int64_t{1} << 62})));
  ASSERT_TRUE(server_of_liar.receive());
  liar.close();
  ASSERT_TRUE(comes_to(0, 0));
  WirePeer client = new_client();
  WirePeer server = upstream_->accept();
  ASSERT_TRUE(client.send(read_of(1)));
  const TimePoint begin = clock_.now();
  EXPECT_TRUE(wait_until([&] {
    clock_.advance(1ms);
    return server.readable(0ms) || clock_.now() > begin + 5s;
  }));
  EXPECT_LE(clock_.now(), begin + 2s);
  serve(server, client, 1);
}

// A process that was to take over may hang, and keep its copies of the sockets open.
TEST_F(WorkerFaults, AConnectionThatEndsDoesSoForEveryProcessThatHasItsSockets) {
  for (const bool by_the_client : {true, false}) {
    Shared shared = connect();
    give(shared, packed());
    (by_the_client ? shared.client : shared.server).close();
    EXPECT_TRUE((by_the_client ? shared.server : shared.client).closed_by_peer());
    EXPECT_TRUE(wait_until([this] { return shared_.counters.connections_open == 0; }));
  }
}

// It would make the pause of all others long. It follows by itself.
TEST_F(WorkerFaults, AConnectionThatHoldsMoreThanTheBudgetIsPackedLater) {
  dispatcher_.freeze(true);
  Shared shared = connect();
  give(shared, packed({read_of(1), read_of(2)}));
  for (const PackBudget budget : {PackBudget{.bytes = 1}, PackBudget{.requests = 1}}) {
    std::atomic<int> sessions = -1;
    const auto count = [&](const auto& all) { sessions = static_cast<int>(all.size()); };
    worker_.pack(count, budget);
    ASSERT_TRUE(wait_until([&] { return sessions == 0; })) << sessions;
  }
  std::atomic<bool> has_left = false;
  std::atomic<std::size_t> held = 0;
  shared_.leaving = true;
  worker_.leave_packed(
      [&](const std::vector<Worker::Packed>& all) { held = all.at(0).state.list("held").size(); },
      [&] { has_left = true; });
  ASSERT_TRUE(wait_until([&] {
    clock_.advance(1ms);
    return has_left && held == 2;
  }));
  stop();
  EXPECT_FALSE(shared.client.readable(0ms));
}

TEST_F(WorkerFaults, AProcessThatEndsLeavesWhatItHasPackedToAnother) {
  Shared shared = connect();
  give(shared, packed());
  std::atomic<std::size_t> sessions = 0;
  worker_.pack([&](const std::vector<Worker::Packed>& all) { sessions = all.size(); });
  ASSERT_TRUE(wait_until([&] { return sessions == 1; }));
  stop();
  EXPECT_FALSE(shared.client.readable(0ms));
  EXPECT_FALSE(shared.server.readable(0ms));
}

}  // namespace
}  // namespace vpfs::proxy
