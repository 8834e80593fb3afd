#include <atomic>
#include <vector>

#include <gmock/gmock.h>

#include "test/control/wire/port_fixture.h"
#include "test/support/comes_true.h"

// What peers do that mean harm or are broken.
namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::RawPeer;
using ::testing::HasSubstr;

class PortAttackTest : public test::PortFixture {
 protected:
  // A client is served while `attack` goes on.
  void expect_served() {
    auto client = this->client();
    ASSERT_TRUE(client) << client.error().error.text();
    const auto answer = client->ask(stats(0), kPatience);
    EXPECT_TRUE(answer) << answer.error().error.text();
  }
  void expect_all_gone() {
    EXPECT_TRUE(comes_true([&] { return port_->counters().connections == 0; }))
        << port_->counters().connections;
  }
};

TEST_F(PortAttackTest, ALengthOfFourGibibytesIsRefusedAtOnceBeforeHelloAndAfter) {
  open();
  for (const bool after : {false, true}) {
    RawPeer raw = after ? greeted() : peer();
    raw.send(test::length_field(0xffffffff));
    const auto why = raw.receive();
    ASSERT_TRUE(why && why->has_error());
    EXPECT_THAT(why->error().text(), HasSubstr("longer than allowed"));
    EXPECT_TRUE(raw.closed_within());
  }
  EXPECT_EQ(port_->counters().broken, 2U);
  expect_served();
}

TEST_F(PortAttackTest, ARefusedPeerIsClosedAlthoughItSendsOn) {
  options_.limits.farewell = 200ms;
  open();
  auto raw = peer();
  raw.send(test::length_field(0));
  for (int i = 0; i < 1000 && raw.send(std::string(10000, 'x'), 100ms); ++i) {
  }
  EXPECT_TRUE(raw.closed_within());
  expect_served();
}

TEST_F(PortAttackTest, HalfMessagesAreWaitedForOnlySoLong) {
  options_.limits.hello = 300ms;
  options_.limits.idle = 500ms;
  open();
  std::vector<RawPeer> peers;
  const std::string frame = test::frame_of(reload(5));
  for (std::size_t half = 0; half < frame.size(); ++half) {
    peers.push_back(peer());
    peers.back().send(frame.substr(0, half));
    peers.push_back(greeted());
    peers.back().send(frame.substr(0, half));
  }
  expect_served();
  for (RawPeer& raw : peers) EXPECT_TRUE(raw.closed_within());
  EXPECT_TRUE(owner_.asked().size() == 1);
  EXPECT_GT(port_->counters().silent, 0U);
  EXPECT_GT(port_->counters().idle, 0U);
  expect_all_gone();
}

TEST_F(PortAttackTest, AThousandSilentConnectionsKeepNoCallerOut) {
  options_.limits.hello = 1s;
  open();
  std::vector<RawPeer> peers;
  for (int i = 0; i < 1000; ++i) {
    peers.push_back(peer());
    if (i % 100 == 0) expect_served();
  }
  expect_served();
  EXPECT_LE(port_->counters().connections, options_.limits.connections_of_a_peer + 2);
  EXPECT_GT(port_->counters().evicted, 800U);
  for (RawPeer& raw : peers) EXPECT_TRUE(raw.closed_within());
  expect_all_gone();
}

TEST_F(PortAttackTest, ConnectionsBeyondTheBoundAreToldSo) {
  options_.limits.connections_of_a_peer = 3;
  open();
  std::vector<RawPeer> peers;
  for (int i = 0; i < 3; ++i) peers.push_back(greeted());
  const auto refused = client();
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().reached);
  EXPECT_THAT(refused.error().error.text(), HasSubstr("too many connections"));
  peers.pop_back();
  EXPECT_TRUE(comes_true([&] { return port_->counters().connections == 2; }));
  expect_served();
}

// Callers that see only own jobs say Hello and stay: no silence gives them away.
TEST_F(PortAttackTest, UsersWithoutRightsLeaveRoomForThoseWithRights) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another";
  options_.limits.connections = 4;
  options_.limits.connections_of_a_peer = 2;
  options_.limits.connections_of_others = 2;
  open();
  std::vector<RawPeer> peers;
  std::size_t refused = 0;
  for (const std::uint32_t uid : {23456U, 23457U}) {
    ASSERT_TRUE(test::run_as(uid, uid, [&] {
      for (int i = 0; i < 2; ++i) {
        RawPeer raw = peer();
        const auto hello = raw.greet();
        if (!hello || !hello->has_hello()) ++refused;
        peers.push_back(std::move(raw));
      }
    }));
  }
  EXPECT_EQ(refused, 2U);
  expect_served();
  const RawPeer writer = greeted();
  const RawPeer another = greeted();
}

TEST_F(PortAttackTest, ASilentUserWithoutRightsGoesForAnother) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another";
  options_.limits.connections_of_others = 2;
  open();
  std::vector<RawPeer> silent;
  silent.push_back(peer());
  ASSERT_TRUE(test::run_as(23456, 23456, [&] {
    for (int i = 0; i < 2; ++i) silent.push_back(peer());
  }));
  ASSERT_TRUE(test::run_as(23457, 23457, [&] { const RawPeer raw = greeted(); }));
  EXPECT_TRUE(silent[1].closed_within());
  EXPECT_TRUE(silent[0].greet()) << "an administrator's connection stays";
}

TEST_F(PortAttackTest, APeerThatDoesNotReadIsClosed) {
  options_.limits.stall = 400ms;
  owner_.on_ask([](const Envelope& request, const Caller&, const Answer& answer) {
    Ack ack;
    if (request.has_reload()) ack.set_text(std::string(2'000'000, 'x'));
    answer(std::move(ack));
  });
  open();
  auto slow = greeted();
  for (std::uint64_t id = 2; id < 200; ++id) slow.send(reload(id));
  expect_served();
  // It gets a part of what it asked for: the port stops reading before it has asked for much.
  EXPECT_TRUE(comes_true([&] { return port_->counters().slow == 1; }));
  EXPECT_LE(owner_.asked().size(), 2 * options_.limits.requests_in_flight + 1);
  EXPECT_TRUE(slow.closed_within());
  expect_all_gone();
}

TEST_F(PortAttackTest, AWatchThatIsNotReadDoesNotPileUp) {
  options_.limits.stall = 400ms;
  owner_.on_ask([](const Envelope&, const Caller&, const Answer& answer) {
    Envelope reply;
    reply.mutable_stats_reply()->set_name(std::string(1'000'000, 'x'));
    answer(std::move(reply));
  });
  open();
  auto slow = greeted();
  Envelope watch;
  watch.set_id(2);
  watch.mutable_watch()->set_period_us(1);
  slow.send(watch);
  EXPECT_TRUE(comes_true([&] { return port_->counters().slow == 1; }));
  EXPECT_LE(owner_.asked().size(), 5U);
  expect_all_gone();
}

TEST_F(PortAttackTest, AFloodFromOneLeavesRoomForOthers) {
  open();
  std::atomic<bool> done = false;
  std::vector<std::thread> floods;
  for (int i = 0; i < 3; ++i) {
    floods.emplace_back([&] {
      auto raw = greeted();
      std::string many;
      for (std::uint64_t id = 2; id < 1000; ++id) many += test::frame_of(stats(id));
      while (!done && raw.send(many, 100ms)) {
        while (!done && raw.receive(10ms)) {
        }
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const auto begin = clock_.now();
    expect_served();
    EXPECT_LT(clock_.now() - begin, 2s);
  }
  done = true;
  for (std::thread& flood : floods) flood.join();
  expect_all_gone();
}

TEST_F(PortAttackTest, UnknownMessagesAreAnsweredAndNothingElse) {
  open();
  auto raw = greeted();
  std::string unknown = {8, 3};
  unknown += std::string("\xea\x04\x02", 3) + "hi";
  const std::string frame =
      test::length_field(static_cast<std::uint32_t>(unknown.size())) + unknown;
  for (int i = 0; i < 200; ++i) {
    raw.send(frame);
    const auto answer = raw.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->error().code(), Error::UNSUPPORTED);
  }
  EXPECT_EQ(port_->counters().unknown, 200U);
  raw.send(stats(9));
  EXPECT_TRUE(raw.receive()->has_stats_reply());
}

TEST_F(PortAttackTest, PeersThatVanishLeaveNothing) {
  owner_.on_ask([](const Envelope&, const Caller&, const Answer& answer) {
    std::thread([answer] { answer(Ack()); }).join();
  });
  open();
  for (int i = 0; i < 300; ++i) {
    RawPeer raw = i % 2 == 0 ? peer() : greeted();
    if (i % 3 == 0) raw.send(test::frame_of(reload(2)).substr(0, 5));
    if (i % 3 == 1) raw.send(reload(2));
  }
  expect_all_gone();
  expect_served();
}

TEST_F(PortAttackTest, AnUnknownCallerCannotKeepTheOwnerBusy) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another";
  open();
  EXPECT_TRUE(test::run_as(23456, 23456, [&] {
    auto raw = greeted();
    std::size_t refused = 0;
    for (std::uint64_t id = 2; id < 502; ++id) {
      raw.send(stats(id));
      const auto answer = raw.receive();
      ASSERT_TRUE(answer);
      if (answer->has_error()) ++refused;
    }
    EXPECT_GT(refused, 300U);
  }));
  EXPECT_LT(owner_.asked().size(), 200U);
  // Others of the group may.
  expect_served();
}

}  // namespace
}  // namespace vpfs::control
