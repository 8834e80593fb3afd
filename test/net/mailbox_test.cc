#include "net/mailbox.h"

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::net {
namespace {

using namespace std::chrono_literals;

TEST(Mailbox, WhatIsPostedRunsInItsOrder) {
  EpollSet set;
  Mailbox mailbox(set);
  std::vector<int> ran;
  for (int i = 0; i < 3; ++i) mailbox.post([&ran, i] { ran.push_back(i); });
  EXPECT_TRUE(ran.empty());
  EXPECT_TRUE(set.serve(0ms));
  EXPECT_EQ(ran, std::vector({0, 1, 2}));
  EXPECT_FALSE(set.serve(0ms));
}

TEST(Mailbox, WhatIsPostedFromInsideHasALaterTurn) {
  EpollSet set;
  Mailbox mailbox(set);
  int ran = 0;
  mailbox.post([&] {
    ++ran;
    mailbox.post([&] { ++ran; });
  });
  EXPECT_TRUE(set.serve(0ms));
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(set.serve(0ms));
  EXPECT_EQ(ran, 2);
}

TEST(Mailbox, EveryPostOfAnotherThreadWakesTheSet) {
  constexpr int kPosts = 20'000;
  EpollSet set;
  Mailbox mailbox(set);
  int ran = 0;
  const std::jthread other([&] {
    for (int i = 0; i < kPosts; ++i) mailbox.post([&ran] { ++ran; });
  });
  while (ran < kPosts) ASSERT_TRUE(set.serve(10s)) << ran;
}

TEST(Mailbox, WhatHasNotRunEndsWithIt) {
  EpollSet set;
  auto kept = std::make_shared<int>(1);
  {
    Mailbox mailbox(set);
    mailbox.post([kept] {});
    EXPECT_EQ(kept.use_count(), 2);
  }
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_FALSE(set.serve(0ms));
}

}  // namespace
}  // namespace vpfs::net
