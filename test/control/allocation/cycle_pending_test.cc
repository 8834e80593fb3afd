// Answers of aggregators whose own stages may still enforce caps of earlier cycles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/allocation/cycle_state.h"
#include "test/control/allocation/cycle_fixture.h"

namespace vpfs::allocation {
namespace {

class PendingTest : public CycleStateTest {
 protected:
  // The caps of both are answered; then those of the first go down.
  void lower_first() {
    first_ = add("s1", "a");
    second_ = add("s2", "b");
    grant_bytes({{"a", 700}, {"b", 300}});
    begin_and_answer();
    grant_bytes({{"a", 200}, {"b", 800}});
    begin();
  }

  StageId first_;
  StageId second_;
};

TEST_F(PendingTest, TheLargerCapCountsUntilALaterAnswerIsNotPending) {
  lower_first();
  EXPECT_EQ(answer_pending(first_), AnswerResult::taken);
  answer(second_);
  for (int i = 0; i < 3; ++i) {
    begin();
    EXPECT_EQ(bytes(first_), 200U);  // it is sent the next one all the same
    EXPECT_EQ(bytes(second_), 300U);
    EXPECT_EQ(state_->in_force().bytes, 1000U);
    answer_pending(first_);
    answer(second_);
  }
  begin_and_answer();
  begin();
  EXPECT_EQ(bytes(second_), 800U);
}

TEST_F(PendingTest, CountersOfAPendingAnswerCount) {
  lower_first();
  answer_pending(first_, {{.flow = 0, .arrived_bytes = 500, .done_cost = 400}});
  answer(second_);
  begin();
  EXPECT_EQ(pair(0).arrived.bytes, 500U);
  EXPECT_EQ(pair(0).done, 400U);
}

TEST_F(PendingTest, ARaiseThatIsPendingCountsToo) {
  const StageId stage = add("s1", "a");
  grant_bytes({{"a", 100}});
  begin_and_answer();
  grant_bytes({{"a", 600}});
  begin();
  answer_pending(stage);
  grant_bytes({{"a", 50}});
  begin();
  EXPECT_EQ(state_->in_force().bytes, 600U);
}

TEST_F(PendingTest, APendingStageKeepsItsCapsForAsLongAsItIsConnected) {
  lower_first();
  answer_pending(first_);
  answer(second_);
  now_ += 2s;  // longer than the lease
  begin();
  EXPECT_EQ(bytes(second_), 300U);
  answer(second_);
  state_->leave(first_, now_);
  const TimePoint left = now_;
  while (now_ + 50ms < left + 1200ms) {
    begin_and_answer();
    ASSERT_EQ(bytes(second_), 300U);
  }
  begin_and_answer();
  EXPECT_EQ(bytes(second_), 800U);
}

TEST_F(PendingTest, AFlowThatEndsWhileItsStageIsPendingKeepsItsCap) {
  lower_first();
  answer_pending(first_, {{.flow = 0, .ended = true}});
  answer(second_);
  begin();
  EXPECT_EQ(state_->pairs().size(), 1U);
  EXPECT_EQ(policy_->last_less.bytes, 700U);
  EXPECT_EQ(bytes(second_), 300U);
  answer(second_);
  answer(first_);
  begin();
  EXPECT_EQ(policy_->last_less.bytes, 0U);
  EXPECT_EQ(bytes(second_), 800U);
}

TEST_F(PendingTest, ANumberThatChangesHandsWhileItsStageIsPendingKeepsTheCapOfTheJobBefore) {
  lower_first();
  announce(first_, 0, "c", 2);
  answer_pending(first_);
  answer(second_);
  grant_bytes({{"b", 800}, {"c", 200}});
  begin();
  EXPECT_EQ(policy_->last_less.bytes, 700U);
  EXPECT_EQ(bytes(first_), 0U);
  announce(first_, 1, "a", 1);  // the job before is back
  answer_pending(first_);
  answer(second_);
  grant_bytes({{"a", 200}, {"b", 600}, {"c", 200}});
  begin();
  EXPECT_EQ(policy_->last_less.bytes, 0U);
  EXPECT_EQ(state_->in_force().bytes, 1000U);
  answer(first_);
  answer(second_);
  begin();
  EXPECT_EQ(bytes(second_), 600U);
}

}  // namespace
}  // namespace vpfs::allocation
