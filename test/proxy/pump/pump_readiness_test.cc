// A pump is told once of what its source has: what it leaves it must remember, and what it has
// taken it need not look for.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <initializer_list>
#include <span>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proxy/pump/pump.h"
#include "test/proxy/pump_rig.h"

namespace vpfs::proxy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Script script_of(std::initializer_list<std::pair<Kind, std::size_t>> messages) {
  Script script;
  for (const auto& [kind, size] : messages) script.add(kind, size);
  return script;
}

// Sends all at once.
void send_whole(PumpRig& rig, std::span<const std::byte> bytes) {
  ASSERT_EQ(::send(rig.feeder().native_handle(), bytes.data(), bytes.size(), 0),
            static_cast<ssize_t>(bytes.size()));
}

TEST(PumpReadiness, WhatIsTakenIsNotLookedForAgain) {
  constexpr std::size_t kMessage = 64 * 1024;
  const Script scripts[] = {script_of({{Kind::forward, 300}}),
                            script_of({{Kind::hold, 300}}),
                            script_of({{Kind::discard, 300}}),
                            script_of({{Kind::forward, kMessage}}),
                            script_of({{Kind::forward, 40}, {Kind::forward, kMessage}}),
                            script_of({{Kind::raw, kMessage}}),
                            script_of({{Kind::hold, 300}, {Kind::hold, 20}, {Kind::forward, 30}})};
  constexpr std::size_t kTimes = 20;
  for (const Script& script : scripts) {
    PumpRig rig;
    begin(rig);
    for (std::size_t i = 1; i <= kTimes; ++i) {
      send_whole(rig, script.in);
      rig.take(script.out.size() * i);
    }
    expect_all(rig, script, kTimes);
    EXPECT_EQ(rig.calls.found_nothing(), 0U) << script.in.size();
  }
}

constexpr std::size_t kData = 60'000;  // is spliced, and loopback sends it in one piece
constexpr std::size_t kRequest = 180;

// A pump that knows the pattern of a client which writes one piece after the other.
class PumpAfterWrites : public ::testing::Test {
 protected:
  void SetUp() override {
    rig_.release_at_once();
    rig_.start();
    for (int i = 0; i < 3; ++i) send({request(), data()});
    drops_ = rig_.calls.made(Call::drop);
    peeks_ = rig_.calls.made(Call::peek);
    sends_ = rig_.calls.made(Call::sendmsg);
  }
  static ByteVector request(std::size_t size = kRequest) { return message(Kind::hold, size, 1); }
  static ByteVector data() { return message(Kind::forward, kData, 2); }

  // Each message comes when the one before has gone.
  void send(std::initializer_list<ByteVector> messages) {
    for (const ByteVector& each : messages) {
      send_whole(rig_, each);
      append(sent_, each);
      rig_.take(sent_.size());
      ASSERT_TRUE(rig_.taken == sent_);
    }
  }
  // All messages come at once.
  void send_together(std::initializer_list<ByteVector> messages) {
    ByteVector all;
    for (const ByteVector& each : messages) append(all, each);
    send({all});
  }
  [[nodiscard]] std::size_t drops() const { return rig_.calls.made(Call::drop) - drops_; }
  [[nodiscard]] std::size_t peeks() const { return rig_.calls.made(Call::peek) - peeks_; }
  [[nodiscard]] std::size_t sends() const { return rig_.calls.made(Call::sendmsg) - sends_; }

  PumpRig rig_;

 private:
  ByteVector sent_;
  std::size_t drops_ = 0;
  std::size_t peeks_ = 0;
  std::size_t sends_ = 0;
};

TEST_F(PumpAfterWrites, ARequestBehindDataIsReceivedByOneCall) {
  for (int i = 0; i < 10; ++i) send({request(), data()});
  EXPECT_EQ(drops(), 0U);
  EXPECT_EQ(peeks(), 10U) << "of the data only";
  EXPECT_EQ(rig_.calls.found_nothing(), 0U);
}

TEST_F(PumpAfterWrites, ARequestMayHaveAnySize) {
  for (const std::size_t size : {8U, 5000U, 180U, 181U, 179U, 9U, 20000U, 16384U, 180U, 180U}) {
    send({request(size), data()});
  }
}

TEST_F(PumpAfterWrites, WritesOfSeveralPiecesOfDataAreSplicedWhole) {
  send({data()});  // where a request was expected
  const std::size_t before = sends();
  for (int i = 0; i < 5; ++i) send({request(), data(), data(), data()});
  EXPECT_EQ(sends() - before, 5U) << "each for a request";
}

TEST_F(PumpAfterWrites, WithSeveralRequestsOnTheWayNoneIsExpectedInPlaceOfData) {
  send({request(), request()});
  send_together({data(), request()});
  send_together({data(), request()});
  EXPECT_EQ(sends(), 4U) << "each for a request";
  send_together({data(), data()});
}

TEST_F(PumpAfterWrites, WhatIsExpectedIsRememberedWhileNothingComes) {
  rig_.calls.fail(Call::recv, 1, EAGAIN);
  send({request(), data()});
  EXPECT_TRUE(rig_.calls.has_failed());
  EXPECT_EQ(drops(), 0U);
}

TEST_F(PumpAfterWrites, TheEndIsToldWhereARequestIsExpected) {
  rig_.feeder().shutdown(net::Socket::shutdown_send);
  rig_.take_until_end();
  EXPECT_THAT(rig_.owner->ends, ElementsAre("source"));
  EXPECT_FALSE(rig_.owner->error);
}

TEST(PumpReadiness, AKernelThatDoesNotSayWhatIsLeftIsAskedUntilThereIsNothing) {
  Script script = script_of({{Kind::forward, 300},
                             {Kind::hold, 40},
                             {Kind::forward, kLarge},
                             {Kind::hold, 40},
                             {Kind::discard, 4000},
                             {Kind::raw, kLarge}});
  for (const std::size_t most : {std::size_t{5000}, SIZE_MAX}) {
    PumpRig rig;
    rig.calls.hide_unread();
    rig.calls.limit(most, most);
    begin(rig);
    for (int i = 0; i < 3; ++i) rig.feed(script.in);
    expect_all(rig, script, 3);
    EXPECT_GT(rig.calls.found_nothing(), 0U);
    rig.feeder().shutdown(net::Socket::shutdown_send);
    rig.take_until_end();
    EXPECT_THAT(rig.owner->ends, ElementsAre("source"));
  }
}

// So many that no turn takes all.
Script many_requests() {
  Script script;
  for (int i = 0; i < 500; ++i) script.add(Kind::hold, 100);
  return script;
}

TEST(PumpReadiness, AStreamThatUsesItsTurnUpGoesOnAfterTheOthersUntold) {
  const Script script = many_requests();
  PumpRig rig;
  rig.start();
  send_whole(rig, script.in);
  ASSERT_TRUE(rig.set.serve(std::chrono::seconds(1)));
  std::size_t turns = 0;
  for (std::size_t held = 0; rig.thread.has_more(); ++turns) {
    EXPECT_GT(rig.owner->held.size(), held);
    held = rig.owner->held.size();
    EXPECT_LT(held, script.held);
    EXPECT_FALSE(rig.set.serve(Duration::zero())) << "nothing new has come";
    rig.thread.go_on();
  }
  EXPECT_GT(turns, 1U);
  EXPECT_EQ(rig.owner->held.size(), script.held);
}

TEST(PumpReadiness, AStoppedPumpDoesNotGoOn) {
  const Script script = many_requests();
  PumpRig rig;
  rig.start();
  send_whole(rig, script.in);
  ASSERT_TRUE(rig.set.serve(std::chrono::seconds(1)));
  ASSERT_TRUE(rig.thread.has_more());
  const std::size_t held = rig.owner->held.size();
  rig.in_event([&] { rig.pump.stop(); });
  EXPECT_FALSE(rig.thread.has_more());
  rig.poll();
  EXPECT_EQ(rig.owner->held.size(), held);
}

TEST(PumpReadiness, WhatComesWhileItIsPausedAndTheEndBehindItAreNotForgotten) {
  const ByteVector bytes = message(Kind::forward, 5000);
  PumpRig rig;
  begin(rig);
  rig.in_event([&] { rig.pump.pause(); });
  rig.feed(bytes);
  rig.feeder().shutdown(net::Socket::shutdown_send);
  rig.poll();
  EXPECT_THAT(rig.owner->ends, IsEmpty());
  EXPECT_EQ(rig.calls.made(Call::recv), 0U);
  rig.in_event([&] { rig.pump.resume(); });
  rig.take_until_end();
  EXPECT_TRUE(rig.taken == bytes);
  EXPECT_THAT(rig.owner->ends, ElementsAre("source"));
}

TEST(PumpReadiness, TheEndBehindBytesThatASlowSinkHoldsUpComesBehindThem) {
  for (const std::size_t size : {std::size_t{900}, kLarge}) {
    Script script;
    while (script.in.size() < (std::size_t{4} << 20)) script.add(Kind::forward, size);
    PumpRig rig;
    rig.make_buffers_small();
    begin(rig);
    const std::size_t in = rig.fill_up(script.in);
    ASSERT_TRUE(rig.pump.output().blocked_since());
    rig.feeder().shutdown(net::Socket::shutdown_send);
    rig.poll();
    EXPECT_THAT(rig.owner->ends, IsEmpty());
    rig.take_until_end();
    EXPECT_THAT(rig.owner->ends, ElementsAre("source"));
    ASSERT_EQ(rig.taken.size(), in);
    EXPECT_TRUE(std::equal(rig.taken.begin(), rig.taken.end(), script.out.begin()));
  }
}

TEST(PumpReadiness, ASinkThatIsNotWaitedForWakesNoPump) {
  PumpRig rig;
  rig.make_buffers_small();
  begin(rig);
  Script script;
  while (script.in.size() < (std::size_t{4} << 20)) script.add(Kind::forward, 900);
  const std::size_t in = rig.fill_up(script.in);
  ASSERT_TRUE(rig.pump.output().blocked_since());
  rig.feed(std::span(script.in).subspan(in));
  rig.take(script.out.size());
  rig.poll();
  const std::uint64_t events = rig.thread.event();
  EXPECT_FALSE(rig.run_once(std::chrono::milliseconds(5)));
  EXPECT_EQ(rig.thread.event(), events);
}

TEST(PumpReadiness, AClosedSocketTellsNothing) {
  PumpRig rig;
  begin(rig);
  rig.feed(message(Kind::forward, 500));
  rig.take(500);
  send_whole(rig, message(Kind::forward, 500));
  rig.in_event([&] { rig.pump.stop(); });
  rig.source.close();
  rig.sink.close();
  EXPECT_FALSE(rig.run_once(std::chrono::milliseconds(5)));
}

}  // namespace
}  // namespace vpfs::proxy
