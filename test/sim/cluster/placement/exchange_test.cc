#include "sim/cluster/placement/exchange.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

constexpr std::array kAll = {Pattern::permutation, Pattern::neighbours, Pattern::all_to_all,
                             Pattern::ring};

TEST(SimExchange, WhatTasksSendAndHearAddsUp) {
  for (const Pattern pattern : kAll) {
    for (const std::uint32_t tasks : {1U, 2U, 3U, 64U}) {
      for (const std::uint32_t messages : {1U, 5U}) {
        const Profile profile{.message_bytes = {1000}, .messages = messages, .pattern = pattern};
        Random random(1);
        const Exchange exchange(profile, tasks, random);
        std::vector<std::uint64_t> sent(tasks);
        for (std::uint32_t phase = 0; phase < exchange.phases(); ++phase) {
          std::vector<std::uint32_t> heard(tasks);
          for (std::uint32_t task = 0; task < tasks; ++task) {
            for (const Exchange::Message& each : exchange.sent_by(task, phase, random)) {
              EXPECT_NE(each.to, task);
              ++heard[each.to];
              sent[task] += each.size.count;
            }
          }
          for (std::uint32_t task = 0; task < tasks; ++task) {
            EXPECT_EQ(heard[task], exchange.heard_by(task));
          }
        }
        for (const std::uint64_t each : sent) {
          const bool may_be_silent = tasks == 1 || pattern == Pattern::permutation;
          EXPECT_TRUE(each == 1000 || (may_be_silent && each == 0)) << each;
        }
      }
    }
  }
}

TEST(SimExchange, AllToAllReachesEveryOtherTaskOnce) {
  const Profile profile{.pattern = Pattern::all_to_all};
  Random random(1);
  const Exchange exchange(profile, 8, random);
  EXPECT_EQ(exchange.phases(), 7U);
  std::multiset<std::uint32_t> reached;
  for (std::uint32_t phase = 0; phase < 7; ++phase) {
    reached.insert(exchange.sent_by(3, phase, random).front().to);
  }
  EXPECT_EQ(reached, (std::multiset<std::uint32_t>{0, 1, 2, 4, 5, 6, 7}));
}

TEST(SimExchange, ARingHasAHopForEachOtherTask) {
  const Profile profile{.pattern = Pattern::ring};
  Random random(1);
  const Exchange exchange(profile, 8, random);
  EXPECT_EQ(exchange.phases(), 7U);
  for (std::uint32_t phase = 0; phase < 7; ++phase) {
    EXPECT_EQ(exchange.sent_by(7, phase, random).front().to, 0U);
  }
}

TEST(SimExchange, APermutationStaysTheSameInAllPhases) {
  const Profile profile{.messages = 9, .pattern = Pattern::permutation};
  Random random(1);
  const Exchange exchange(profile, 100, random);
  std::set<std::uint32_t> partners;
  for (std::uint32_t task = 0; task < 100; ++task) {
    for (std::uint32_t phase = 0; phase < 9; ++phase) {
      const auto sent = exchange.sent_by(task, phase, random);
      if (sent.empty()) continue;
      partners.insert(sent.front().to);
      EXPECT_EQ(sent.front().to, exchange.sent_by(task, 0, random).front().to);
    }
  }
  EXPECT_GE(partners.size(), 90U);
}

TEST(SimExchange, MixedMessagesAreMostlySmall) {
  const Profile profile{
      .message_bytes = {1'000'000}, .sizes = MessageSizes::mixed, .pattern = Pattern::ring};
  Random random(1);
  const Exchange exchange(profile, 2, random);
  int small = 0;
  std::uint64_t largest = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Bytes size = exchange.sent_by(0, 0, random).front().size;
    EXPECT_GE(size.count, 1U);
    small += size.count <= 100 ? 1 : 0;
    largest = std::max(largest, size.count);
  }
  EXPECT_NEAR(small, 9000, 100);
  EXPECT_GT(largest, 990'000U);
  EXPECT_LE(largest, 1'000'000U);
}

}  // namespace
}  // namespace vpfs::sim
