// A pump whose connections break, whose stream makes no sense, or whose system calls fail.

#include <algorithm>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proxy/pump/pump.h"
#include "test/proxy/pump_rig.h"

namespace vpfs::proxy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PumpFaults, AResetOfEitherSideIsAnError) {
  for (const bool source : {true, false}) {
    PumpRig rig;
    begin(rig);
    rig.feed(message(Kind::forward, 500));
    rig.take(500);
    net::Socket& peer = source ? rig.feeder() : rig.taker();
    peer.set_option(asio::socket_base::linger(true, 0));
    if (source) {
      peer.close();
    } else {
      peer.close();
      for (int i = 0; i < 3 && rig.owner->ends.empty(); ++i) {
        rig.feed(message(Kind::forward, 500));
        rig.poll();
      }
    }
    rig.take_until_end();
    EXPECT_THAT(rig.owner->ends, ElementsAre(source ? "source" : "sink"));
    EXPECT_TRUE(rig.owner->error);
  }
}

TEST(PumpFaults, AMessageWithoutSenseIsTheLastOneLookedAt) {
  PumpRig rig;
  begin(rig);
  ByteVector bytes = message(Kind::forward, 100);
  append(bytes, ByteVector(64, std::byte{0xff}));
  append(bytes, message(Kind::forward, 100));
  rig.feed(bytes);
  rig.take_until_end();
  EXPECT_THAT(rig.owner->ends, ElementsAre("lost framing"));
  EXPECT_EQ(rig.owner->finished_keys.size(), 1U);
  EXPECT_EQ(rig.calls.made(Call::send), 0U);
}

// Messages of all kinds. With a limited sink they need every system call.
Script script_for_faults() {
  Script script;
  script.add(Kind::forward, 30);
  script.add(Kind::forward, 60'000);
  script.add(Kind::forward, 100);
  script.add(Kind::forward, 60'000);
  script.add(Kind::discard, 20'000);
  script.add(Kind::hold, 40);
  script.add(Kind::raw, 70'000);
  script.add(Kind::forward, 20'000);
  script.add(Kind::forward, 20'000);
  script.add(Kind::hold, 5000);
  return script;
}

class PumpWithAFailingCall : public ::testing::TestWithParam<Call> {};

// Fails each call of a kind in turn, and returns how many there were.
template <typename Check>
std::size_t fail_each(Call call, int error, const Script& script, Check check) {
  for (std::size_t nth = 1;; ++nth) {
    PumpRig rig;
    rig.calls.limit(30'000, 10'000);
    rig.calls.fail(call, nth, error);
    begin(rig);
    for (auto rest = std::span(script.in); !rest.empty() && rig.owner->ends.empty();) {
      const std::size_t size = std::min<std::size_t>(20'000, rest.size());
      rig.feed(rest.first(size));
      rest = rest.subspan(size);
    }
    rig.take(script.out.size());
    if (!rig.calls.has_failed()) return nth - 1;
    check(rig, nth);
    if (::testing::Test::HasFailure()) return nth;
  }
}

TEST_P(PumpWithAFailingCall, AnInterruptionOrEmptySocketChangesNothing) {
  const Script script = script_for_faults();
  for (const int error : {EINTR, EAGAIN}) {
    if (GetParam() == Call::drop && error == EAGAIN) continue;  // peeked bytes cannot vanish
    const std::size_t failed =
        fail_each(GetParam(), error, script, [&](PumpRig& rig, std::size_t nth) {
          SCOPED_TRACE(nth);
          expect_all(rig, script);
          EXPECT_THAT(rig.owner->ends, IsEmpty());
        });
    EXPECT_GE(failed, 1U);
  }
}

TEST_P(PumpWithAFailingCall, AnErrorIsToldOnceAndNothingMovesAfterIt) {
  const Script script = script_for_faults();
  const bool of_source = GetParam() == Call::recv || GetParam() == Call::peek ||
                         GetParam() == Call::drop || GetParam() == Call::fill;
  const std::size_t failed = fail_each(GetParam(), EIO, script, [&](PumpRig& rig, std::size_t nth) {
    SCOPED_TRACE(nth);
    rig.take_until_end();
    EXPECT_THAT(rig.owner->ends, ElementsAre(of_source ? "source" : "sink"));
    EXPECT_EQ(rig.owner->error.value(), EIO);
    const std::uint64_t sent = rig.pump.output().bytes_sent();
    rig.inject(message(Kind::forward, 20));
    rig.poll();
    rig.take_what_is_there();
    EXPECT_EQ(rig.pump.output().bytes_sent(), sent);
    ASSERT_EQ(rig.taken.size(), sent);
    EXPECT_TRUE(std::equal(rig.taken.begin(), rig.taken.end(), script.out.begin()));
  });
  EXPECT_GE(failed, 1U);
}

INSTANTIATE_TEST_SUITE_P(EachCall, PumpWithAFailingCall, ::testing::ValuesIn(kAllCalls));

}  // namespace
}  // namespace vpfs::proxy
