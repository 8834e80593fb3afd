#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/saved/saved_state.h"
#include "net/descriptor.h"
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
  WirePeer client = WirePeer::connect(front_.port());
  const WirePeer accepted = front_.accept();
  WirePeer to_server = WirePeer::connect(upstream_->port());
  WirePeer server = upstream_->accept();
  const Buffer request =
      test::small_write_request(7, {.type = orangefs::IoType::write, .size = 4096}, Buffer(4096));

  SavedState state;
  state.set("protocol", "orangefs");
  state.set("has_joined", std::uint64_t{0});
  for (const char* const part : {"conversation", "to_server", "to_client"}) {
    (void)state.add_list(part).emplace_back();
  }
  SavedState::Values held;
  SavedState& write = held.emplace_back();
  write.set("arrival", static_cast<std::uint64_t>(clock_.now().time_since_epoch().count()));
  write.set("message", std::string(reinterpret_cast<const char*>(request.data()), request.size()));
  state.set("held", std::move(held));

  client.close();
  worker_.take_late(std::move(state), net::Descriptor(::dup(accepted.socket())),
                    net::Descriptor(::dup(to_server.socket())));
  to_server.close();
  EXPECT_FALSE(server.receive()) << "an abandoned write was forwarded";
  EXPECT_TRUE(wait_until([this] { return shared_.counters.connections_open == 0; }));
}

}  // namespace
}  // namespace vpfs::proxy
