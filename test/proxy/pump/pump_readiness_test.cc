// A pump is told once of what its source has: what it leaves it must remember, and what it has
// taken it need not look for.

#include <algorithm>
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
