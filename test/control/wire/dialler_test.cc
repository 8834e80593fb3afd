// A port that connects to a coordinator.
#include "control/wire/dialler.h"

#include <functional>
#include <optional>

#include <gmock/gmock.h>

#include "test/control/wire/dialler_fixture.h"
#include "test/support/comes_true.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::FakeCoordinator;
using test::RawPeer;
using ::testing::HasSubstr;

TEST_F(DiallerTest, SaysHelloAsAStageAndIsThenAskedLikeOneThatWasDialled) {
  FakeCoordinator coordinator(path());
  open();
  auto stage = coordinator.accept();
  ASSERT_TRUE(stage);
  const auto hello = stage->receive();
  ASSERT_TRUE(hello && hello->has_hello());
  EXPECT_FALSE(hello->answer());
  EXPECT_EQ(hello->hello().role(), Hello::STAGE);
  EXPECT_EQ(hello->hello().name(), "fake");
  EXPECT_EQ(hello->hello().version(), 1U);
  EXPECT_FALSE(status().connected) << "it has not answered yet";
  ASSERT_TRUE(stage->send(FakeCoordinator::hello(hello->id())));
  EXPECT_TRUE(shows_connected());
  EXPECT_EQ(status().name, "site");
  EXPECT_EQ(status().address, path());
  EXPECT_EQ(status().problem, "");

  ASSERT_TRUE(stage->send(cycle(1)));
  const auto report = stage->receive();
  ASSERT_TRUE(report && report->has_report());
  EXPECT_EQ(report->id(), 1U);
  EXPECT_TRUE(report->answer());
  ASSERT_TRUE(stage->send(stats(2)));
  const auto answer = stage->receive();
  ASSERT_TRUE(answer && answer->has_stats_reply());
  EXPECT_EQ(answer->id(), 2U);
  EXPECT_EQ(answer->stats_reply().upstream(), "coordinator " + path());
  EXPECT_FALSE(answer->stats_reply().partial());
  ASSERT_EQ(owner_.asked().size(), 1U);
  EXPECT_EQ(owner_.asked()[0].caller.rights, Rights::change);
  EXPECT_EQ(owner_.asked()[0].caller.from, "unix");
  ASSERT_TRUE(stage->send(reload(3)));
  ASSERT_TRUE(stage->receive());
  const std::string audit = test::read_text(config_.audit);
  EXPECT_THAT(audit, HasSubstr("coordinator " + path()));
  EXPECT_THAT(audit, HasSubstr("the first of this connection"));
  EXPECT_THAT(audit, HasSubstr("reload"));
}

TEST_F(DiallerTest, AConnectionThatEndsIsMadeAgain) {
  std::optional<FakeCoordinator> coordinator(std::in_place, path());
  open();
  for (int i = 0; i < 3; ++i) {
    const auto stage = coordinator->greeted();
    ASSERT_TRUE(stage) << i;
    EXPECT_TRUE(shows_connected());
  }
  EXPECT_TRUE(shows_problem("it closed the connection"));
  coordinator.reset();
  EXPECT_TRUE(shows_problem("there is no such socket: does the coordinator run"));
  EXPECT_FALSE(status().connected);
  EXPECT_GE(status().dials, 4U);
  coordinator.emplace(path());
  const auto stage = coordinator->greeted();
  ASSERT_TRUE(stage);
  EXPECT_TRUE(shows_connected());
  EXPECT_THAT(status().problem, HasSubstr("no such socket")) << "the last one stays to be seen";
}

TEST_F(DiallerTest, ARefusalIsShownAndLoggedOnceHoweverOftenItIsDialled) {
  const CapturedLog log;
  FakeCoordinator coordinator(path());
  open();
  for (int i = 0; i < 4; ++i) {
    auto stage = coordinator.accept();
    ASSERT_TRUE(stage) << i;
    const auto hello = stage->receive();
    ASSERT_TRUE(hello);
    Envelope refusal;
    refusal.set_id(hello->id());
    refusal.set_answer(true);
    *refusal.mutable_error() = make_error(Error::INVALID, "cost_model", "it differs from stor1's");
    ASSERT_TRUE(stage->send(refusal));
    EXPECT_TRUE(stage->closed_within());
  }
  EXPECT_TRUE(shows_problem("it refuses this stage: cost_model: it differs from stor1's"));
  port_.reset();
  EXPECT_EQ(log.lines_with("it differs from stor1's"), 1U);
}

TEST_F(DiallerTest, WhatACoordinatorSaysIsOneShortLine) {
  const CapturedLog log;
  FakeCoordinator coordinator(path());
  open();
  auto stage = coordinator.accept();
  ASSERT_TRUE(stage && stage->receive());
  Envelope refusal;
  refusal.set_answer(true);
  *refusal.mutable_error() =
      make_error(Error::INVALID, "", "no\n[error] all is lost" + std::string(10'000, 'x'));
  ASSERT_TRUE(stage->send(refusal));
  EXPECT_TRUE(shows_problem("it refuses this stage: no\\n[error] all is lost"));
  EXPECT_LT(status().problem.size(), 600U);
  port_.reset();
  EXPECT_EQ(log.lines_with("\n"), log.lines_with("control.coordinator"));
}

TEST_F(DiallerTest, ARefusalLaterOnEndsTheConnectionToo) {
  FakeCoordinator coordinator(path());
  open();
  auto stage = coordinator.greeted();
  ASSERT_TRUE(stage);
  Envelope refusal;
  refusal.set_answer(true);
  *refusal.mutable_error() = make_error(Error::UNAVAILABLE, "", "another stage has this name");
  ASSERT_TRUE(stage->send(refusal));
  EXPECT_TRUE(shows_problem("it refuses this stage: another stage has this name"));
  stage.reset();
  EXPECT_TRUE(coordinator.greeted());
}

TEST_F(DiallerTest, APeerThatIsNotACoordinatorIsShown) {
  FakeCoordinator coordinator(path());
  open();
  const auto answer_with = [&](const std::function<std::string(Envelope)>& bytes) {
    auto stage = coordinator.accept();
    ASSERT_TRUE(stage);
    const auto hello = stage->receive();
    ASSERT_TRUE(hello);
    ASSERT_TRUE(stage->send(bytes(FakeCoordinator::hello(hello->id()))));
    EXPECT_TRUE(stage->closed_within());
  };
  answer_with([](const Envelope&) { return std::string("SSH-2.0-OpenSSH_9.2p1 Debian\r\n"); });
  EXPECT_TRUE(shows_problem("is not a coordinator: a frame that is longer than allowed"));
  answer_with([](Envelope hello) {
    hello.mutable_hello()->set_version(9);
    hello.mutable_hello()->set_least(8);
    return test::frame_of(hello);
  });
  EXPECT_TRUE(shows_problem("the other versions 8 to 9"));
  answer_with([](Envelope hello) {
    hello.mutable_hello()->set_role(Hello::STAGE);
    hello.mutable_hello()->set_name("stor7");
    return test::frame_of(hello);
  });
  EXPECT_TRUE(shows_problem("is not a coordinator: it calls itself \"stor7\""));
  answer_with([](Envelope hello) {
    hello.mutable_ack();
    return test::frame_of(hello);
  });
  EXPECT_TRUE(shows_problem("it sent no Hello"));
  answer_with([](Envelope hello) {
    const std::string frame = test::frame_of(hello);
    return test::length_field(static_cast<std::uint32_t>(frame.size())) + frame;
  });
  EXPECT_TRUE(shows_problem("is not a coordinator: a frame that is not a message"));
  EXPECT_FALSE(status().connected);
}

TEST_F(DiallerTest, AStandbyIsNotTheLeader) {
  FakeCoordinator coordinator(path());
  open();
  EXPECT_TRUE(coordinator.refuses_as_standby());
  EXPECT_TRUE(shows_problem("is a standby, and does not lead"));
  EXPECT_FALSE(status().connected);
  const auto stage = coordinator.greeted();
  EXPECT_TRUE(stage) << "it may lead by now";
  EXPECT_TRUE(shows_connected());
}

TEST_F(DiallerTest, ACoordinatorThatIsSilentIsDroppedAndDialledAgain) {
  options_.limits.coordinator_silence = 150ms;
  FakeCoordinator coordinator(path());
  open();
  auto mute = coordinator.accept();
  ASSERT_TRUE(mute && mute->receive());
  EXPECT_TRUE(mute->closed_within()) << "it sent no Hello";
  EXPECT_TRUE(shows_problem("it said nothing for 150 ms"));
  auto stage = coordinator.greeted();
  ASSERT_TRUE(stage);
  EXPECT_TRUE(stage->closed_within());
  EXPECT_TRUE(coordinator.greeted());
}

TEST_F(DiallerTest, ACoordinatorThatTalksIsNotDropped) {
  constexpr auto kSilence = 1s;  // longer than a busy machine lets a thread wait
  options_.limits.coordinator_silence = kSilence;
  FakeCoordinator coordinator(path());
  open();
  auto stage = coordinator.greeted();
  ASSERT_TRUE(stage);
  const auto began = std::chrono::steady_clock::now();
  for (std::uint64_t i = 1; std::chrono::steady_clock::now() < began + kSilence + 300ms; ++i) {
    ASSERT_TRUE(stage->send(cycle(i)));
    ASSERT_TRUE(stage->receive());
    std::this_thread::sleep_for(20ms);
  }
}

TEST_F(DiallerTest, TheBoundsOfAPortAreNotForItsCoordinator) {
  options_.limits.connections = 1;
  options_.limits.connections_of_a_peer = 1;
  open();
  const RawPeer administrator = greeted();
  FakeCoordinator coordinator(path());
  auto stage = coordinator.greeted();
  ASSERT_TRUE(stage);
  ASSERT_TRUE(stage->send(stats(1)));
  EXPECT_TRUE(stage->receive());
  EXPECT_TRUE(peer().closed_within()) << "nor does it make room for others";
}

TEST_F(DiallerTest, AReloadMayChangeTheCoordinatorOrTakeItAway) {
  FakeCoordinator first(path());
  FakeCoordinator second(path("others"));
  open();
  auto stage = first.greeted();
  ASSERT_TRUE(stage);
  ASSERT_TRUE(port_->reload(config_));
  ASSERT_TRUE(stage->send(stats(1)));
  EXPECT_TRUE(stage->receive()) << "the same one stays";

  config_.coordinators = {path("others")};
  ASSERT_TRUE(port_->reload(config_));
  auto other = second.greeted();
  ASSERT_TRUE(other);
  EXPECT_TRUE(stage->closed_within());
  EXPECT_TRUE(shows_connected());
  EXPECT_EQ(status().address, path("others"));

  config_.coordinators.clear();
  ASSERT_TRUE(port_->reload(config_));
  EXPECT_TRUE(other->closed_within());
  EXPECT_TRUE(comes_true([&] { return !port_->coordinator(); }));
  EXPECT_FALSE(second.accept(200ms));

  config_.coordinators = {path()};
  ASSERT_TRUE(port_->reload(config_));
  EXPECT_TRUE(first.greeted());
}

TEST_F(DiallerTest, ThePauseGrowsWhileThereIsNoCoordinator) {
  open();
  ASSERT_TRUE(comes_true([&] { return status().dials >= 3; }));
  const std::uint64_t before = status().dials;
  std::this_thread::sleep_for(1s);
  EXPECT_LE(status().dials - before, 45U) << "25 ms is the shortest of long pauses";
  EXPECT_FALSE(status().connected);
}

// Nothing takes the connection: the queue of the listener is full.
TEST_F(DiallerTest, APortThatDialsEndsAtOnce) {
  FakeCoordinator coordinator(path());
  std::vector<RawPeer> queue;
  for (int i = 0; i < 17; ++i) queue.emplace_back(path());
  open();
  ASSERT_TRUE(comes_true([&] { return status().dials >= 1; }));
  std::this_thread::sleep_for(20ms);
  const auto before = std::chrono::steady_clock::now();
  port_->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 2s);
}

TEST_F(DiallerTest, AWatchOfACoordinatorEndsWithItsConnection) {
  FakeCoordinator coordinator(path());
  open();
  auto stage = coordinator.greeted();
  ASSERT_TRUE(stage);
  Envelope watch;
  watch.set_id(5);
  watch.mutable_watch()->set_period_us(50'000);
  ASSERT_TRUE(stage->send(watch));
  for (int i = 0; i < 3; ++i) {
    const auto reply = stage->receive();
    ASSERT_TRUE(reply && reply->has_stats_reply());
    EXPECT_EQ(reply->id(), 5U);
  }
  stage.reset();
  EXPECT_TRUE(coordinator.greeted());
}

}  // namespace
}  // namespace vpfs::control
