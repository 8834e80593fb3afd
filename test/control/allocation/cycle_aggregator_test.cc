// What CycleState does for an aggregator: its capacity and its leases are its parent's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/allocation/cycle_state.h"
#include "test/control/allocation/cycle_fixture.h"

namespace vpfs::allocation {
namespace {

using testing::HasSubstr;

class AggregatorCycleTest : public CycleStateTest {
 protected:
  Duration lease(StageId stage) { return sent_[stage.index].lease; }
};

TEST_F(AggregatorCycleTest, ItIsSettledWhenAllThatMayBeInForceFitsIntoTheCapacity) {
  const StageId one = add("s1", "a");
  const StageId two = add("s2", "b");
  grant_bytes({{"a", 600}, {"b", 400}});
  EXPECT_TRUE(state_->settled());
  begin_and_answer();
  EXPECT_TRUE(state_->settled());
  state_->set_capacity({.bytes = 500});
  EXPECT_FALSE(state_->settled());
  grant_bytes({{"a", 300}, {"b", 200}});
  begin();
  EXPECT_EQ(bytes(one), 300U);
  EXPECT_EQ(bytes(two), 200U);
  answer(one);
  EXPECT_FALSE(state_->settled());
  answer(two);
  EXPECT_TRUE(state_->settled());
}

TEST_F(AggregatorCycleTest, NoPairMayHaveACapOfWhatIsNotDividedAnyMore) {
  const StageId stage = add("s1", "a");
  grant_bytes({{"a", 600}});
  begin_and_answer();
  state_->set_capacity({});
  policy_->grant = nullptr;
  begin();
  EXPECT_FALSE(state_->settled());
  answer(stage);
  EXPECT_TRUE(state_->settled());
}

TEST_F(AggregatorCycleTest, WhatASilentStageHoldsIsMissingUntilItHasExpired) {
  add("s1", "a");
  const StageId hung = add("s2", "b");
  grant_bytes({{"a", 400}, {"b", 600}});
  begin_and_answer();
  state_->leave(hung, now_);
  state_->set_capacity({.bytes = 500});
  grant_bytes({{"a", 100}, {"b", 600}});
  begin_and_answer();
  EXPECT_FALSE(state_->settled());
  now_ += 1200ms;
  begin_and_answer();
  EXPECT_TRUE(state_->settled());
}

TEST_F(AggregatorCycleTest, CapsHaveHalfOfTheTimeThatIsLeftAfterTheTransit) {
  const StageId stage = add("s1", "a");
  grant_bytes({{"a", 600}});
  state_->set_caps_end(now_ + 1050ms);
  begin_and_answer();
  EXPECT_EQ(lease(stage), 400ms);
  begin_and_answer();
  EXPECT_EQ(lease(stage), 375ms);
  state_->set_caps_end(now_);  // it never goes back
  begin_and_answer();
  EXPECT_EQ(lease(stage), 350ms);
  state_->set_caps_end(now_ + 1050ms);
  begin_and_answer();
  EXPECT_EQ(lease(stage), 400ms);
  state_->set_caps_end(now_ + 1h);
  begin_and_answer();
  EXPECT_EQ(lease(stage), 1s);
}

TEST_F(AggregatorCycleTest, CapsAreTakenBackBeforeTheyHaveToEnd) {
  const StageId stage = add("s1", "a");
  policy_->grant = [](std::string_view, const Pair&) -> Grant {
    return {.bytes = 600, .elsewhere_total = 5};
  };
  const TimePoint end = now_ + 1s;
  state_->set_caps_end(end);
  while (now_ + 50ms < end - 200ms) {
    begin_and_answer();
    ASSERT_EQ(bytes(stage), 600U);
    // Whoever reads it within the other half enforces it no longer than that.
    ASSERT_LE(now_ + 2 * lease(stage), end - 200ms);
  }
  begin_and_answer();
  EXPECT_EQ(sent_[stage.index].grants[0].grant, (Grant{{}, {}, {}, 5}));
  EXPECT_TRUE(sent_[stage.index].complete);
  EXPECT_EQ(lease(stage), 1s);
  EXPECT_EQ(state_->in_force().bytes, 600U);
  begin();
  EXPECT_EQ(state_->in_force().bytes, 0U);
}

TEST_F(AggregatorCycleTest, CapsThatAreSentAfterAStopOfTheProcessWouldEndTooLate) {
  const StageId stage = add("s1", "a");
  grant_bytes({{"a", 600}});
  EXPECT_TRUE(state_->is_in_time(now_ + 1h)) << "nothing says when caps end";
  const TimePoint end = now_ + 1050ms;
  state_->set_caps_end(end);
  begin();
  ASSERT_EQ(lease(stage), 400ms);
  EXPECT_TRUE(state_->is_in_time(end - 200ms - 400ms));
  EXPECT_FALSE(state_->is_in_time(end - 200ms - 400ms + 1ns));
  answer(stage);
  while (now_ + 50ms < end - 200ms) begin_and_answer();
  begin_and_answer();
  EXPECT_TRUE(state_->is_in_time(end + 1h)) << "there are no caps in it";
}

TEST_F(AggregatorCycleTest, AQuestionIsInTimeWhateverWasSentBefore) {
  const StageId stage = add("s1", "a");
  grant_bytes({{"a", 600}});
  const TimePoint end = now_ + 1050ms;
  state_->set_caps_end(end);
  begin_and_answer();
  ASSERT_EQ(lease(stage), 400ms);
  ASSERT_FALSE(state_->is_in_time(end));
  ask();
  EXPECT_TRUE(state_->is_in_time(end));
}

TEST_F(AggregatorCycleTest, AStageThatMightReadItsCapsTooLateIsDisconnected) {
  CycleSettings settings = small_settings();
  settings.silent_cycles = 100;
  start(settings);
  const StageId lively = add("s1", "a");
  const StageId hung = add("s2", "b");
  grant_bytes({{"a", 600}, {"b", 400}});
  const TimePoint end = now_ + 1050ms;
  state_->set_caps_end(end);
  begin();
  ASSERT_EQ(lease(hung), 400ms);
  answer(lively);
  while (now_ + 50ms + 50ms <= end - 200ms - 400ms) {
    begin();
    ASSERT_FALSE(is_sent(hung));
    answer(lively);
  }
  begin();
  ASSERT_TRUE(is_sent(hung));
  EXPECT_TRUE(sent_[hung.index].close);
  EXPECT_EQ(lease(hung), Duration::zero());
  EXPECT_LE(now_, end - 200ms - 400ms);
  EXPECT_FALSE(sent_[lively.index].close);
}

TEST_F(AggregatorCycleTest, AStageIsWaitedForWhileTheEndMovesOn) {
  const StageId hung = add("s1", "a");
  grant_bytes({{"a", 600}});
  for (int i = 0; i < 4; ++i) {  // as many cycles as make it silent
    state_->set_caps_end(now_ + 1050ms);
    begin();
    ASSERT_FALSE(sent_[hung.index].close);
  }
}

TEST_F(AggregatorCycleTest, CapsOfAShortLeaseExpireEarlier) {
  const StageId gone = add("s1", "a");
  grant_bytes({{"a", 600}});
  state_->set_caps_end(now_ + 1050ms);
  begin_and_answer();
  ASSERT_EQ(lease(gone), 400ms);
  state_->leave(gone, now_);
  const TimePoint left = now_;
  now_ = left + 400ms + 200ms - 51ms;
  begin();
  EXPECT_EQ(state_->in_force().bytes, 600U);
  begin();
  EXPECT_EQ(state_->in_force().bytes, 0U);
}

TEST_F(AggregatorCycleTest, AStageThatCannotCapGetsTheRestOfItsGrants) {
  const Result<StageId> plain = state_->join("s1", 1, now_, {.caps = false});
  ASSERT_TRUE(plain);
  introduce(*plain, "a");
  const StageId other = add("s2", "b");
  policy_->grant = [](std::string_view, const Pair&) -> Grant {
    return {.bytes = 500, .elsewhere_total = 5};
  };
  begin_and_answer();
  EXPECT_EQ(sent_[plain->index].grants[0].grant, (Grant{{}, {}, {}, 5}));
  EXPECT_EQ(sent_[other.index].grants[0].grant, (Grant{500, {}, {}, 5}));
  EXPECT_THAT(status(*plain).problem, HasSubstr("cannot enforce"));
  EXPECT_EQ(status(other).problem, "");
  begin();
  EXPECT_EQ(state_->in_force().bytes, 500U);
  EXPECT_FALSE(pair(0).takes_caps);
  EXPECT_TRUE(pair(1).takes_caps);
}

TEST_F(AggregatorCycleTest, AStageThatDoesNotLimitMetadataOperationsIsSentNoneOfThem) {
  const Result<StageId> plain = state_->join("s1", 1, now_, {.metadata_caps = false});
  ASSERT_TRUE(plain);
  introduce(*plain, "a");
  const StageId other = add("s2", "b");
  policy_->grant = [](std::string_view, const Pair&) -> Grant { return {.bytes = 500}; };
  begin_and_answer();
  EXPECT_EQ(status(*plain).problem, "") << "no pair has a limit of them";
  policy_->grant = [](std::string_view, const Pair& pair) -> Grant {
    return {
        .bytes = 500,
        .metadata_operations = has_part(pair, kResources[2]) ? std::optional(70U) : std::nullopt};
  };
  begin_and_answer();
  EXPECT_EQ(sent_[plain->index].grants[0].grant, (Grant{500, {}, {}, {}}));
  EXPECT_EQ(sent_[other.index].grants[0].grant, (Grant{500, {}, 70, {}}));
  EXPECT_THAT(status(*plain).problem, HasSubstr("does not limit metadata operations"));
  EXPECT_EQ(status(other).problem, "");
  begin();
  EXPECT_EQ(state_->in_force().metadata_operations, 0U) << "it has no capacity";
}

}  // namespace
}  // namespace vpfs::allocation
