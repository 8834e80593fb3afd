#include "proxy/pump/pump.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "test/proxy/pump_rig.h"

namespace vpfs::proxy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Script small_script() {
  Script script;
  for (const std::size_t size : {8U, 9U, 40U}) {
    script.add(Kind::forward, size);
    script.add(Kind::hold, size + 3);
    script.add(Kind::hold, size);
    script.add(Kind::discard, size + 1);
    script.add(Kind::raw, size + 5);
  }
  return script;
}

Script large_script() {
  Script script;
  script.add(Kind::forward, 20);
  script.add(Kind::forward, kLarge);
  script.add(Kind::hold, 5000);  // more than is peeked at
  script.add(Kind::raw, kLarge + 1);
  script.add(Kind::forward, 48 * 1024 - 1);
  script.add(Kind::hold, 30);
  script.add(Kind::forward, 48 * 1024);
  script.add(Kind::discard, kLarge);
  script.add(Kind::forward, 10);
  script.add(Kind::forward, kLarge * 5);
  script.add(Kind::hold, 100 * 1024);
  script.add(Kind::forward, 8);
  return script;
}

TEST(Pump, EverySplitOfAStreamGivesTheSameBytes) {
  const Script script = small_script();
  PumpRig rig;
  begin(rig);
  for (std::size_t split = 0; split < script.in.size(); ++split) {
    rig.taken.clear();
    const auto bytes = std::span(script.in);
    rig.feed(bytes.first(split));
    rig.poll();
    rig.feed(bytes.subspan(split));
    rig.take(script.out.size());
    ASSERT_TRUE(rig.taken == script.out) << "split at " << split;
  }
  EXPECT_EQ(rig.owner->released, script.held * script.in.size());
  EXPECT_EQ(rig.owner->finished_keys.size(), script.finished * script.in.size());
}

TEST(Pump, ByteByByteLargeMessagesComeThroughWhole) {
  const Script script = small_script();
  PumpRig rig;
  begin(rig);
  for (const std::byte& each : script.in) rig.feed(std::span(&each, 1));
  expect_all(rig, script);
}

TEST(Pump, LargeMessagesAreSplicedAndSplitAnywhereTheyAreTheSame) {
  const Script script = large_script();
  std::mt19937 random(1);
  PumpRig rig;
  begin(rig);
  constexpr std::size_t kRounds = 20;
  for (std::size_t round = 0; round < kRounds; ++round) {
    auto rest = std::span(script.in);
    while (!rest.empty()) {
      const std::size_t most = random() % 3 == 0 ? 3000 : 200'000;
      const std::size_t size = std::min<std::size_t>(1 + random() % most, rest.size());
      rig.feed(rest.first(size));
      rest = rest.subspan(size);
    }
  }
  expect_all(rig, script, kRounds);
  EXPECT_GT(rig.calls.made(Call::fill), kRounds);
  EXPECT_GT(rig.calls.made(Call::drain), kRounds);
  EXPECT_GT(rig.calls.made(Call::peek), 0U);
}

TEST(Pump, CallsThatMoveAFewBytesAtATimeLoseNone) {
  Script script = small_script();
  script.add(Kind::forward, 60'000);
  script.add(Kind::hold, 3000);
  for (const std::size_t most : {1U, 2U, 7U, 11U, 1000U}) {
    PumpRig rig;
    rig.calls.limit(most, most);
    begin(rig);
    rig.feed(script.in);
    expect_all(rig, script);
  }
}

// Splicing needs pipes.
TEST(Pump, OutOfDescriptorsItCopies) {
  const Script script = large_script();
  PumpRig rig;
  begin(rig);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  rig.feed(script.in);
  rig.take(script.out.size());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  expect_all(rig, script);
  EXPECT_EQ(rig.calls.made(Call::fill), 0U);
}

class PumpWithASlowSink : public ::testing::TestWithParam<std::size_t> {};

TEST_P(PumpWithASlowSink, ReadsNoMoreThanItMayKeepAndLosesNothing) {
  Script script;
  while (script.in.size() < (std::size_t{4} << 20)) {
    script.add(Kind::forward, GetParam());
    script.add(Kind::hold, 100);
  }
  PumpRig rig;
  rig.make_buffers_small();
  begin(rig);
  const std::size_t in = rig.fill_up(script.in);
  ASSERT_LT(in, script.in.size());
  EXPECT_LE(rig.pump.output().unsent(), rig.thread.scratch().size());
  EXPECT_TRUE(rig.pump.output().blocked_since());
  EXPECT_FALSE(rig.pump.waits_for_source());
  const int times_moved = rig.owner->times_moved;
  rig.feed(std::span(script.in).subspan(in));
  expect_all(rig, script);
  EXPECT_GT(rig.owner->times_moved, times_moved);
  EXPECT_EQ(rig.calls.taken_in_while_blocked(), 0U);
  EXPECT_EQ(rig.pump.output().unsent(), 0U);
  EXPECT_FALSE(rig.pump.output().blocked_since());
}

INSTANTIATE_TEST_SUITE_P(CopiedAndSpliced, PumpWithASlowSink,
                         ::testing::Values(500, 20'000, kLarge));

class PumpWithAMessageHalfThrough : public ::testing::TestWithParam<Kind> {};

TEST_P(PumpWithAMessageHalfThrough, AnInjectedOneGoesBehindItByteForByte) {
  const ByteVector injected = message(Kind::forward, 33, 5);
  const ByteVector second = message(Kind::forward, 12, 6);
  const ByteVector next = message(Kind::forward, 21, 7);
  for (const std::size_t size : {std::size_t{60}, std::size_t{5000}, kLarge}) {
    const ByteVector around = message(GetParam(), size, 3);
    std::vector<std::size_t> places = {kHead + 1, size / 2, size - 1};
    if (size < 100) {
      for (std::size_t at = kHead + 1; at < size; ++at) places.push_back(at);
    }
    for (const std::size_t at : places) {
      PumpRig rig;
      begin(rig);
      rig.feed(std::span(around).first(at));
      rig.take(at);
      ASSERT_TRUE(rig.pump.in_mid_message());
      EXPECT_EQ(rig.pump.left_of_message(), size - at);
      rig.inject(injected);
      const TimePoint since = rig.clock.now();
      rig.clock.advance(std::chrono::seconds(1));
      rig.inject(second);
      EXPECT_EQ(rig.pump.output().waiting_since(), since);
      rig.take_what_is_there();
      EXPECT_EQ(rig.taken.size(), at);
      // The rest arrives together with more messages.
      ByteVector rest(around.begin() + static_cast<std::ptrdiff_t>(at), around.end());
      append(rest, next);
      append(rest, next);
      rig.feed(rest);
      ByteVector expected = around;
      for (const ByteVector& each : {injected, second, next, next}) append(expected, each);
      rig.take(expected.size());
      ASSERT_TRUE(rig.taken == expected) << "at " << at << " of " << size;
      EXPECT_FALSE(rig.pump.output().waiting_since());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfEachKind, PumpWithAMessageHalfThrough,
                         ::testing::Values(Kind::forward, Kind::raw));

TEST(Pump, WhileAMessageIsDroppedAnInjectedOneGoesBetweenTwoOthers) {
  const ByteVector dropped = message(Kind::discard, 600, 3);
  const ByteVector injected = message(Kind::forward, 33, 5);
  const ByteVector next = message(Kind::forward, 21, 7);
  PumpRig rig;
  begin(rig);
  rig.feed(std::span(dropped).first(100));
  rig.poll();
  rig.inject(injected);
  rig.feed(std::span(dropped).subspan(100));
  rig.feed(next);
  rig.take(injected.size() + next.size());
  ByteVector expected = injected;
  append(expected, next);
  EXPECT_TRUE(rig.taken == expected);
}

TEST(Pump, AnInjectedMessageNeverLandsInOneThatASlowSinkHasHalf) {
  const ByteVector injected = message(Kind::forward, 33, 5);
  for (const std::size_t size : {std::size_t{900}, kLarge}) {
    Script script;
    while (script.in.size() < (std::size_t{4} << 20)) script.add(Kind::forward, size);
    PumpRig rig;
    rig.make_buffers_small();
    begin(rig);
    const std::size_t in = rig.fill_up(script.in);
    ASSERT_TRUE(rig.pump.output().blocked_since());
    rig.inject(injected);
    rig.feed(std::span(script.in).subspan(in));
    rig.take(script.out.size() + injected.size());
    ASSERT_EQ(rig.taken.size(), script.out.size() + injected.size());
    // It is at the end of some message, and the other bytes are unchanged.
    const auto at =
        std::search(rig.taken.begin(), rig.taken.end(), injected.begin(), injected.end()) -
        rig.taken.begin();
    EXPECT_EQ(static_cast<std::size_t>(at) % size, 0U);
    rig.taken.erase(rig.taken.begin() + at,
                    rig.taken.begin() + at + static_cast<std::ptrdiff_t>(injected.size()));
    EXPECT_TRUE(rig.taken == script.out);
  }
}

TEST(Pump, PausedItEndsTheMessageThatIsHalfThroughAndNoMore) {
  const ByteVector first = message(Kind::forward, 5000, 1);
  const ByteVector next = message(Kind::forward, 50, 2);
  PumpRig rig;
  begin(rig);
  rig.feed(std::span(first).first(1000));
  rig.take(1000);
  rig.in_event([&] { rig.pump.pause(); });
  ByteVector rest(first.begin() + 1000, first.end());
  append(rest, next);
  rig.feed(rest);
  rig.take(first.size());
  rig.poll();
  rig.take_what_is_there();
  EXPECT_TRUE(rig.taken == first);
  rig.in_event([&] { rig.pump.resume(); });
  rig.take(first.size() + next.size());
  EXPECT_EQ(rig.taken.size(), first.size() + next.size());
}

TEST(Pump, TheEndOfTheSourceIsToldBehindItsLastByte) {
  for (const std::size_t size : {std::size_t{1000}, kLarge}) {
    const ByteVector bytes = message(Kind::forward, size);
    for (const std::size_t come : {size, size - 1, kHead, std::size_t{3}, std::size_t{0}}) {
      PumpRig rig;
      begin(rig);
      rig.feed(std::span(bytes).first(come));
      rig.feeder().shutdown(net::Socket::shutdown_send);
      rig.take_until_end();
      EXPECT_THAT(rig.owner->ends, ElementsAre("source"));
      EXPECT_FALSE(rig.owner->error);
      EXPECT_EQ(rig.pump.in_mid_message(), come != size && come >= kHead);
      // An incomplete head goes nowhere.
      EXPECT_TRUE(rig.taken ==
                  ByteVector(bytes.begin(),
                             bytes.begin() + static_cast<std::ptrdiff_t>(come < kHead ? 0 : come)));
      EXPECT_EQ(rig.owner->finished_keys.size(), come == size ? 1U : 0U);
    }
  }
}

TEST(Pump, TheEndBehindAHeldMessageShowsWhileThatIsHeld) {
  PumpRig rig;
  rig.owner->be_serial();
  rig.start();
  rig.feed(message(Kind::hold, 50));
  rig.poll();
  ASSERT_EQ(rig.owner->held.size(), 1U);
  EXPECT_THAT(rig.owner->ends, IsEmpty());
  rig.feeder().shutdown(net::Socket::shutdown_send);
  rig.take_until_end();
  EXPECT_THAT(rig.owner->ends, ElementsAre("source"));
  EXPECT_THAT(rig.taken, IsEmpty());
}

TEST(Pump, BytesBehindAHeldMessageWaitAndTheirEndComesBehindThem) {
  const ByteVector held = message(Kind::hold, 50, 1);
  const ByteVector behind = message(Kind::forward, kLarge, 2);
  ByteVector all = held;
  append(all, behind);
  PumpRig rig;
  rig.owner->be_serial();
  rig.start();
  rig.feed(std::span(all).first(2000));
  rig.poll();
  EXPECT_TRUE(rig.pump.waits());
  rig.feed(std::span(all).subspan(2000));
  rig.feeder().shutdown(net::Socket::shutdown_send);
  rig.poll();
  EXPECT_THAT(rig.owner->ends, IsEmpty());
  EXPECT_EQ(rig.calls.made(Call::sendmsg), 0U);
  rig.release_at_once();
  rig.take_until_end();
  EXPECT_TRUE(rig.taken == all);
  EXPECT_THAT(rig.owner->ends, ElementsAre("source"));
}

TEST(Pump, TheClockIsReadOnceForEachEvent) {
  const Script script = small_script();
  ByteVector many;
  for (int i = 0; i < 50; ++i) append(many, script.in);
  PumpRig rig;
  begin(rig);
  const std::uint64_t events = rig.thread.event();
  const std::uint64_t reads = rig.clock.reads();
  rig.feed(many);
  rig.take(50 * script.out.size());
  EXPECT_EQ(rig.taken.size(), 50 * script.out.size());
  EXPECT_GT(rig.thread.event(), events);
  EXPECT_EQ(rig.clock.reads() - reads, rig.thread.event() - events);
  // An event takes many messages.
  EXPECT_LT(rig.clock.reads() - reads, 50 * (script.held + script.finished) / 2);
}

// As a successor gets it: the sink takes at once what the process before had not sent.
TEST(Pump, AStreamThatBeginsWithUnsentBytesGoesOn) {
  PumpRig rig;
  net::ignore_broken_pipes();
  const ByteVector unsent = message(Kind::forward, 500);
  const ByteVector next = message(Kind::forward, 700);
  rig.pump.begin_with({.unparsed = {}, .unsent = unsent});
  rig.start();
  rig.in_event([&] { rig.pump.flush(); });
  rig.feed(next);
  ByteVector expected = unsent;
  append(expected, next);
  rig.take(expected.size());
  EXPECT_TRUE(rig.taken == expected) << rig.taken.size() << " of " << expected.size();
}

// The messages before a held one still go out when the owner pauses the pump there and the sink
// takes only a part of them.
TEST(Pump, WhatWaitedIsSentAlthoughThePumpPausesBehindIt) {
  PumpRig rig;
  net::ignore_broken_pipes();
  rig.owner->be_serial();
  rig.start();
  ByteVector in = message(Kind::hold, 100);
  ByteVector passing;
  for (unsigned seed = 0; seed < 10; ++seed) append(passing, message(Kind::forward, 500, seed));
  append(in, passing);
  append(in, message(Kind::hold, 100));
  rig.feed(in);
  ASSERT_EQ(rig.owner->held.size(), 1U);
  ASSERT_TRUE(rig.pump.waits());
  rig.owner->on_hold = [&] { rig.pump.pause(); };
  rig.calls.limit(SIZE_MAX, 1000);
  const ByteVector first = rig.owner->held.front();
  rig.in_event([&] {
    ++rig.owner->released;
    rig.pump.inject_borrowed(first);
    rig.pump.flush();
  });
  ASSERT_EQ(rig.owner->held.size(), 2U);
  ASSERT_TRUE(rig.pump.paused());
  ByteVector expected = first;
  append(expected, passing);
  rig.take(expected.size());
  EXPECT_TRUE(rig.taken == expected) << rig.taken.size() << " of " << expected.size();
}

}  // namespace
}  // namespace vpfs::proxy
