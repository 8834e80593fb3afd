#include "fuse/posix/interrupted_requests.h"

#include <cstdint>
#include <set>

#include <gmock/gmock.h>

namespace vpfs::fuse {
namespace {

using ::testing::ElementsAre;
using Noted = InterruptedRequests::Entry;
using State = InterruptedRequests::Finding::State;

TEST(InterruptedRequests, AreLookedAtUntilTheyAreOver) {
  InterruptedRequests all;
  all.put({.unique = 2}, {.state = State::waits, .uid = 7});
  all.put({.unique = 4}, {.state = State::waits, .uid = 7});
  for (int round = 0; round < 100; ++round) {
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 2; ++i) {
      const Noted entry = all.take().value_or(Noted());
      seen.insert(entry.unique);
      all.put(entry, {.state = State::waits, .uid = 7});
    }
    EXPECT_THAT(seen, ElementsAre(2, 4));
  }
  EXPECT_EQ(all.size(), 2U);
  const Noted first = all.take().value_or(Noted());
  all.put({.unique = 6}, {.state = State::waits, .uid = 7});  // while the first is looked at
  all.put(first, {.state = State::over});
  EXPECT_EQ(all.size(), 2U);
  EXPECT_EQ(all.take().value_or(Noted()).unique, 4U);
  EXPECT_EQ(all.take().value_or(Noted()).unique, 6U);
  EXPECT_FALSE(all.take());
}

TEST(InterruptedRequests, OfOneUserDoNotDelayThoseOfOthers) {
  InterruptedRequests all;
  constexpr std::uint64_t kMany = 10000;
  for (std::uint64_t unique = 1; unique <= kMany; ++unique) {
    all.put({.unique = unique}, {.state = State::waits, .uid = 1});
  }
  all.put({.unique = kMany + 1}, {.state = State::missing});
  for (int round = 0; round < 3; ++round) {
    Noted entry = all.take().value_or(Noted());
    for (int looks = 0; entry.unique <= kMany; entry = all.take().value_or(Noted())) {
      all.put(entry, {.state = State::waits, .uid = 1});
      ASSERT_LT(++looks, 3);
    }
    all.put(entry, {.state = State::waits, .uid = 2});
  }
}

// Its thread carries it from one place to another; or it has its answer.
TEST(InterruptedRequests, OneThatIsMissingIsForgottenInTheEnd) {
  InterruptedRequests all;
  all.put({.unique = 2}, {.state = State::missing});
  int looks = 0;
  while (const std::optional<Noted> entry = all.take()) {
    all.put(*entry, {.state = State::missing});
    ASSERT_LT(++looks, 1000);
  }
  EXPECT_GE(looks, 20) << "two seconds";
  all.put({.unique = 4}, {.state = State::missing});
  for (int i = 0; i < 100; ++i) {
    const std::optional<Noted> entry = all.take();
    ASSERT_TRUE(entry) << "what has been missing is found again";
    all.put(*entry, {.state = i % 2 == 0 ? State::missing : State::waits, .uid = 1});
  }
}

// A process may be done with many requests whose signals are told too late.
TEST(InterruptedRequests, ThoseThatAreMissingAreBounded) {
  InterruptedRequests all;
  all.put({.unique = 1}, {.state = State::waits, .uid = 1});
  constexpr std::uint64_t kMany = 2 * InterruptedRequests::kMostMissing;
  for (std::uint64_t unique = 2; unique <= kMany; ++unique) {
    all.put({.unique = unique}, {.state = State::missing});
  }
  EXPECT_EQ(all.size(), InterruptedRequests::kMostMissing + 1);
  EXPECT_EQ(all.take().value_or(Noted()).unique, 1U) << "what waits is kept";
  EXPECT_EQ(all.take().value_or(Noted()).unique, kMany - InterruptedRequests::kMostMissing + 1)
      << "the oldest of the missing is forgotten";
}

}  // namespace
}  // namespace vpfs::fuse
