#include "proxy/watchdogs.h"

#include <gtest/gtest.h>

#include "test/proxy/sweep_times.h"
#include "test/support/start_time.h"

namespace vpfs::proxy {
namespace {

using namespace std::chrono_literals;
using test::kStart;

TEST(HangUpWatch, AsksTwiceASecondWhileTheStreamIsNotRead) {
  HangUpWatch watch;
  int asked = 0;
  for (int i = 0; i < 100; ++i) asked += watch.is_due(false, kStart + i * kTick) ? 1 : 0;
  EXPECT_EQ(asked, 10);
  for (int i = 100; i < 200; ++i) EXPECT_FALSE(watch.is_due(true, kStart + i * kTick));
  EXPECT_TRUE(watch.is_due(false, kStart + 200 * kTick));
}

TEST(AnswerWatch, AnswersAreOverdueWhenNothingCameForTheLimitWhileTheStreamWaits) {
  AnswerWatch watch;
  EXPECT_FALSE(watch.is_overdue(true, 0, 60s, kStart)) << "it has begun to wait just now";
  EXPECT_FALSE(watch.is_overdue(true, 0, 60s, kStart + 60s - 1ns));
  EXPECT_TRUE(watch.is_overdue(true, 0, 60s, kStart + 60s));
  EXPECT_FALSE(watch.is_overdue(true, 0, 60s, kStart + 60s + kTick)) << "not at each look";
  EXPECT_TRUE(watch.is_overdue(true, 0, 60s, kStart + 120s));
}

TEST(AnswerWatch, AByteOfTheServersBeginsTheTimeAnew) {
  AnswerWatch watch;
  EXPECT_FALSE(watch.is_overdue(true, 10, 60s, kStart));
  EXPECT_FALSE(watch.is_overdue(true, 11, 60s, kStart + 59s));
  EXPECT_FALSE(watch.is_overdue(true, 11, 60s, kStart + 118s));
  EXPECT_TRUE(watch.is_overdue(true, 11, 60s, kStart + 119s));
}

TEST(AnswerWatch, AStreamThatDoesNotWaitMissesNoAnswer) {
  AnswerWatch watch;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(watch.is_overdue(false, 0, 60s, kStart + i * 100s));
  EXPECT_FALSE(watch.is_overdue(true, 0, 60s, kStart + 959s));
  EXPECT_TRUE(watch.is_overdue(true, 0, 60s, kStart + 960s));
}

TEST(MessageWatch, AMessageThatHardlyGoesOnIsOverdueBeforeTheServerGivesItUp) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{800}}) {
    MessageWatch watch;
    TimePoint now = kStart;
    std::uint64_t sent = 1000;
    for (; now < kStart + 4s; now += kTick, sent += bytes) {
      EXPECT_FALSE(watch.is_overdue(true, sent, now)) << bytes;
    }
    EXPECT_TRUE(watch.is_overdue(true, sent, now)) << bytes;
  }
}

TEST(MessageWatch, OneThatGoesOnHasItsTime) {
  MessageWatch watch;
  std::uint64_t sent = 0;
  for (TimePoint now = kStart; now < kStart + 1min; now += kTick, sent += 4096) {
    EXPECT_FALSE(watch.is_overdue(true, sent, now));
  }
}

TEST(MessageWatch, OneThatWaitsForTheServerOrIsWholeIsNotOverdue) {
  MessageWatch watch;
  EXPECT_FALSE(watch.is_overdue(true, 5, kStart));
  EXPECT_FALSE(watch.is_overdue(false, 5, kStart + 3s));
  EXPECT_FALSE(watch.is_overdue(false, 5, kStart + 100s));
  EXPECT_FALSE(watch.is_overdue(true, 5, kStart + 101s));
  EXPECT_TRUE(watch.is_overdue(true, 5, kStart + 105s));
}

TEST(LateForwarding, IsToldFromTheLimitOnWithItsCause) {
  const auto look = [](std::optional<TimePoint> blocked, std::optional<TimePoint> waiting) {
    return late_forwarding(blocked, waiting, 30s, kStart + 30s);
  };
  EXPECT_EQ(look(std::nullopt, std::nullopt), LateForwarding::none);
  EXPECT_EQ(look(kStart + 1ns, kStart + 1ns), LateForwarding::none);
  EXPECT_EQ(look(kStart, std::nullopt), LateForwarding::server_blocked);
  EXPECT_EQ(look(std::nullopt, kStart), LateForwarding::client_in_message);
  EXPECT_EQ(look(kStart, kStart), LateForwarding::server_blocked);
}

TEST(Silence, MeansMoreTheLongerItIs) {
  EXPECT_EQ(silence_of(0s, 60s), Silence::none);
  EXPECT_EQ(silence_of(199ms, 60s), Silence::none);
  EXPECT_EQ(silence_of(200ms, 60s), Silence::pause);
  EXPECT_EQ(silence_of(2s, 60s), Silence::end);
  EXPECT_EQ(silence_of(60s, 60s), Silence::overdue);
  // However short the limit is.
  EXPECT_EQ(silence_of(100ms, 100ms), Silence::overdue);
}

}  // namespace
}  // namespace vpfs::proxy
