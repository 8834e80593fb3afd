#include "sim/cluster/placement/message_rounds.h"

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

std::uint64_t bytes_of(const MessageRounds& rounds, std::uint32_t tasks) {
  std::uint64_t bytes = 0;
  for (std::uint32_t round = 0; round < rounds.rounds(); ++round) {
    for (std::uint32_t task = 0; task < tasks; ++task) {
      for (const MessageRounds::Message& each : rounds.sent_by(task, round)) {
        bytes += each.size.count;
      }
    }
  }
  return bytes;
}

TEST(MessageRoundsTest, ATaskHasHeardAllWhenAllMessagesToItHaveArrived) {
  const BlockProfile profile = {.tasks = 5};
  Random random(1);
  MessageRounds all(profile, {.messages = 100, .rounds = 3}, random);
  std::size_t sent = 0;
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t task = 0; task < 5; ++task) {
      for (const MessageRounds::Message& each : all.sent_by(task, round)) {
        EXPECT_EQ(each.from, task);
        EXPECT_NE(each.to, task);
        EXPECT_FALSE(all.has_heard_all(each.to, round));
        all.arrived(each.to, round);
        ++sent;
      }
    }
    for (std::uint32_t task = 0; task < 5; ++task) EXPECT_TRUE(all.has_heard_all(task, round));
  }
  EXPECT_EQ(sent, 100U);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(all.leave());
  EXPECT_TRUE(all.leave());
}

TEST(MessageRoundsTest, ATaskSendsAsManyAsThereAreTasksAndUpToNineMore) {
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    Random random(seed);
    const MessageShape shape = draw_message_shape({.tasks = 72}, random);
    EXPECT_TRUE(shape.messages >= 72 * 72 && shape.messages <= 72 * 81);
    EXPECT_EQ(shape.messages % 72, 0U);
    EXPECT_TRUE(shape.rounds >= 1 && shape.rounds <= 10);
    EXPECT_EQ(shape.bundle, 1U);
  }
}

TEST(MessageRoundsTest, BundledMessagesHaveTheSameBytes) {
  BlockProfile profile = {.tasks = 72};
  double bytes[2] = {};
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    for (int i = 0; i < 2; ++i) {
      profile.most_messages = i == 0 ? 1000 : 4;
      Random random(seed);
      const MessageShape shape = draw_message_shape(profile, random);
      if (i == 1) EXPECT_LE(shape.messages, 4U * 72);
      bytes[i] += static_cast<double>(bytes_of(MessageRounds(profile, shape, random), 72));
    }
  }
  EXPECT_NEAR(bytes[1] / bytes[0], 1, 0.03);
}

TEST(MessageRoundsTest, ASingleTaskSendsNothing) {
  Random random(1);
  EXPECT_EQ(draw_message_shape({.tasks = 1}, random).messages, 0U);
}

}  // namespace
}  // namespace vpfs::sim
