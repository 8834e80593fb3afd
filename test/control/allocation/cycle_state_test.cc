#include "control/allocation/cycle_state.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/control/allocation/cycle_fixture.h"
#include "test/support/allocation_count.h"

namespace vpfs::allocation {
namespace {

TEST_F(CycleStateTest, AStageIsAskedBeforeItIsAllocatedAnything) {
  grant_bytes({{"a", 400}});
  const StageId stage = join("s1");
  begin();
  EXPECT_EQ(sent_[stage.index].sequence, 1U);
  EXPECT_FALSE(sent_[stage.index].complete);
  EXPECT_TRUE(sent_[stage.index].grants.empty());
  announce(stage, 3, "a");
  EXPECT_EQ(answer(stage, {{.flow = 3}}), AnswerResult::taken);
  begin();
  EXPECT_EQ(sent_[stage.index].sequence, 2U);
  EXPECT_TRUE(sent_[stage.index].complete);
  EXPECT_EQ(sent_[stage.index].lease, 1s);
  ASSERT_EQ(sent_[stage.index].grants.size(), 1U);
  EXPECT_EQ(sent_[stage.index].grants[0].flow, 3U);
  EXPECT_EQ(bytes(stage), 400U);
}

TEST_F(CycleStateTest, CapsGoDownAtOnceAndUpWhenThatIsAnswered) {
  const StageId low = add("s1", "a");
  const StageId high = add("s2", "b");
  grant_bytes({{"a", 700}, {"b", 300}});
  begin_and_answer();
  EXPECT_EQ(bytes(low), 700U);
  EXPECT_EQ(bytes(high), 300U);
  grant_bytes({{"a", 200}, {"b", 800}});
  begin();
  EXPECT_EQ(bytes(low), 200U);
  EXPECT_EQ(bytes(high), 300U);
  answer(high);  // but not the one whose cap went down
  begin();
  EXPECT_FALSE(is_sent(low));
  EXPECT_EQ(bytes(high), 300U);
  answer(high);
  EXPECT_EQ(state_->on_report(low, {.term = 7, .sequence = state_->sequence() - 1, .applied = true},
                              {}, now_),
            AnswerResult::taken);
  begin();
  EXPECT_EQ(bytes(low), 200U);
  EXPECT_EQ(bytes(high), 800U);
}

TEST_F(CycleStateTest, WhatIsFreeIsDividedInProportionToTheRaises) {
  const StageId one = add("s1", "a");
  const StageId two = add("s2", "b");
  const StageId three = add("s3", "c");
  grant_bytes({{"a", 900}, {"b", 0}, {"c", 0}});
  begin_and_answer();
  grant_bytes({{"a", 400}, {"b", 400}, {"c", 200}});
  begin_and_answer();
  EXPECT_EQ(bytes(one), 400U);
  EXPECT_EQ(bytes(two), 67U);  // 100 are free; the unit that is left goes to the first
  EXPECT_EQ(bytes(three), 33U);
  begin_and_answer();
  EXPECT_EQ(bytes(two), 400U);
  EXPECT_EQ(bytes(three), 200U);
}

TEST_F(CycleStateTest, EachResourceIsAddedUpByItself) {
  CycleSettings settings = small_settings();
  settings.capacity = {.bytes = 1000, .operations = 10};
  start(settings);
  const StageId one = add("s1", "a");
  const StageId two = add("s2", "b");
  const auto grant = [this](Grant a, Grant b) {
    policy_->grant = [a, b](std::string_view job, const Pair&) { return job == "a" ? a : b; };
  };
  grant({.bytes = 500, .operations = 9, .metadata_operations = 70},
        {.bytes = 500, .operations = 1, .metadata_operations = 10});
  begin_and_answer();
  grant({.bytes = 500, .operations = 4, .metadata_operations = 20},
        {.bytes = 500, .operations = 6, .metadata_operations = 90});
  begin_and_answer();
  EXPECT_EQ(sent_[one.index].grants[0].grant, (Grant{500, 4, 20, {}}));
  // Metadata operations are not divided, so no grant waits for them.
  EXPECT_EQ(sent_[two.index].grants[0].grant, (Grant{500, 1, 90, {}}));
  begin_and_answer();
  EXPECT_EQ(sent_[two.index].grants[0].grant, (Grant{500, 6, 90, {}}));
}

TEST_F(CycleStateTest, ALateStageIsMarkedAndNotWaitedFor) {
  const StageId quick = add("s1", "a");
  const StageId slow = add("s2", "b");
  grant_bytes({{"a", 100}, {"b", 100}});
  begin();
  EXPECT_EQ(state_->unanswered(), 2U);
  EXPECT_EQ(state_->next_deadline(), now_ + 25ms);
  answer(quick);
  state_->on_deadline(now_ + 24ms);
  EXPECT_FALSE(status(slow).late);
  state_->on_deadline(now_ + 25ms);
  EXPECT_FALSE(status(quick).late);
  EXPECT_TRUE(status(slow).late);
  EXPECT_EQ(state_->next_deadline(), std::nullopt);
  const std::uint64_t missed = state_->sequence();
  begin();
  EXPECT_TRUE(is_sent(quick));
  EXPECT_FALSE(is_sent(slow));
  EXPECT_EQ(state_->pairs().size(), 2U);
  // What it says late counts.
  EXPECT_EQ(state_->on_report(slow, {.term = 7, .sequence = missed, .applied = true}, {}, now_),
            AnswerResult::taken);
  EXPECT_FALSE(status(slow).late);
  EXPECT_EQ(status(slow).late_cycles, 1U);
  answer(quick);
  EXPECT_EQ(state_->next_deadline(), std::nullopt);
  begin();
  EXPECT_TRUE(is_sent(slow));
}

TEST_F(CycleStateTest, ASilentStageHoldsItsCapUntilItHasExpired) {
  const StageId lively = add("s1", "a");
  const StageId hung = add("s2", "b");
  grant_bytes({{"a", 400}, {"b", 600}});
  begin_and_answer();
  grant_bytes({{"a", 1000}, {"b", 0}});
  begin();
  answer(lively);
  for (int i = 0; i < 3; ++i) {
    begin();
    EXPECT_FALSE(is_sent(hung));
    EXPECT_EQ(state_->pairs().size(), 2U);
    EXPECT_EQ(bytes(lively), 400U);
    answer(lively);
  }
  begin();
  ASSERT_TRUE(is_sent(hung));
  EXPECT_TRUE(sent_[hung.index].close);
  EXPECT_TRUE(sent_[hung.index].complete);
  EXPECT_EQ(sent_[hung.index].lease, Duration::zero());
  EXPECT_TRUE(sent_[hung.index].grants.empty());
  EXPECT_TRUE(status(hung).silent);
  EXPECT_EQ(state_->pairs().size(), 1U);
  EXPECT_EQ(policy_->last_less.bytes, 600U);
  answer(lively);
  EXPECT_EQ(state_->unanswered(), 0U);
  // While it is connected, it may still apply what it was sent.
  for (int i = 0; i < 40; ++i) begin_and_answer();
  EXPECT_EQ(bytes(lively), 400U);
  EXPECT_EQ(answer(hung), AnswerResult::unexpected);
  const TimePoint left = now_;
  state_->leave(hung, left);
  while (now_ + 50ms < left + 1200ms) {
    begin_and_answer();
    ASSERT_EQ(bytes(lively), 400U);
  }
  begin_and_answer();
  EXPECT_EQ(bytes(lively), 1000U);
  EXPECT_EQ(policy_->last_less.bytes, 0U);
}

TEST_F(CycleStateTest, WhatAStageThatLeftMayEnforceLowersTheCapacity) {
  const StageId stays = add("s1", "a");
  const StageId leaves = add("s2", "a");
  grant_bytes({{"a", 500}});
  begin_and_answer();
  grant_bytes({{"a", 300}});
  begin();
  answer(stays);
  state_->leave(leaves, now_);  // it may have got the last one or not
  begin();
  EXPECT_EQ(policy_->last_less.bytes, 500U);
  EXPECT_EQ(state_->pairs().size(), 1U);
  EXPECT_FALSE(is_sent(leaves));
  answer(stays);
  int known = 0;
  state_->for_each_stage([&known](const StageStatus&) { ++known; });
  EXPECT_EQ(known, 2);
  now_ += 1200ms;
  begin();
  EXPECT_EQ(policy_->last_less.bytes, 0U);
  known = 0;
  state_->for_each_stage([&known](const StageStatus& each) {
    EXPECT_EQ(each.name, "s1");
    ++known;
  });
  EXPECT_EQ(known, 1);
}

TEST_F(CycleStateTest, ARefusedCycleLeavesTheCapsBeforeUntilTheirLeaseEnds) {
  const StageId refuses = add("s1", "a");
  const StageId other = add("s2", "b");
  grant_bytes({{"a", 600}, {"b", 400}});
  begin_and_answer();
  grant_bytes({{"a", 100}, {"b", 900}});
  const TimePoint answered = now_ + 1ms;
  while (now_ + 50ms < answered + 1s) {
    begin();
    EXPECT_EQ(answer(refuses, {}, false), AnswerResult::taken);
    answer(other);
    ASSERT_EQ(bytes(other), 400U);
  }
  EXPECT_GT(status(refuses).not_applied, 0U);
  EXPECT_EQ(status(refuses).problem, "no caps here");
  begin();
  EXPECT_EQ(bytes(refuses), 100U);
  EXPECT_EQ(bytes(other), 900U);
}

TEST_F(CycleStateTest, CapsWaitUntilThoseOfTheCoordinatorBeforeHaveExpired) {
  CycleSettings settings = small_settings();
  settings.clear_from = now_ + 300ms;
  start(settings);
  const StageId stage = add("s1", "a");
  grant_bytes({{"a", 1000}});
  while (now_ + 50ms < settings.clear_from) {
    begin_and_answer();
    ASSERT_TRUE(is_sent(stage));
    ASSERT_FALSE(sent_[stage.index].complete);
    ASSERT_TRUE(sent_[stage.index].grants.empty());
  }
  begin();
  EXPECT_EQ(bytes(stage), 1000U);
}

TEST_F(CycleStateTest, TotalsOfServiceElsewhereDoNotWait) {
  CycleSettings settings = small_settings();
  settings.clear_from = now_ + 300ms;
  start(settings);
  const StageId stage = add("s1", "a");
  policy_->grant = [](std::string_view, const Pair& each) -> Grant {
    return {.elsewhere_total = each.done + 5};
  };
  begin();
  ASSERT_EQ(sent_[stage.index].grants.size(), 1U);
  EXPECT_EQ(sent_[stage.index].grants[0].grant, (Grant{{}, {}, {}, 5}));
  state_->leave(stage, now_);
  begin();
  EXPECT_EQ(state_->in_force(), Amounts{});
}

TEST_F(CycleStateTest, CapsStayWhenThePolicyCannotDivide) {
  const StageId stage = add("s1", "a");
  grant_bytes({{"a", 700}});
  begin_and_answer();
  policy_->problem = "zero";
  begin_and_answer();
  EXPECT_EQ(state_->policy_problem(), "zero");
  EXPECT_EQ(bytes(stage), 700U);
  policy_->problem.clear();
  begin_and_answer();
  EXPECT_EQ(state_->policy_problem(), "");
}

TEST_F(CycleStateTest, WhatBeginsWhileThePolicyCannotDivideGetsWhatIsFree) {
  const StageId first = add("s1", "a");
  grant_bytes({{"a", 700}});
  begin_and_answer();
  policy_->problem = "no floor";
  const StageId second = add("s2", "b");
  begin_and_answer();
  EXPECT_EQ(bytes(first), 700U);
  EXPECT_EQ(bytes(second), 300U);
  const StageId third = add("s3", "c");
  begin_and_answer();
  EXPECT_EQ(bytes(third), 0U);
  EXPECT_EQ(state_->in_force().bytes, 1000U);
}

TEST_F(CycleStateTest, NoneIsWithoutACapIfThePolicyNeverDivided) {
  policy_->problem = "no floor";
  const StageId stage = add("s1", "a");
  begin_and_answer();
  EXPECT_EQ(bytes(stage), 1000U);
}

TEST_F(CycleStateTest, FourMessagesMakeACycleAsWell) {
  const StageId stage = add("s1", "a");
  grant_bytes({{"a", 500}});
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ask();
    EXPECT_EQ(answer(stage, {{.flow = 0, .arrived_bytes = 100 * i}}), AnswerResult::taken);
    begin(false);
    EXPECT_EQ(pair(0).arrived.bytes, 100U);
    EXPECT_EQ(bytes(stage), 500U);
    EXPECT_EQ(answer(stage), AnswerResult::taken);
  }
}

TEST_F(CycleStateTest, ASmallerCapacityIsReachedByLowering) {
  const StageId one = add("s1", "a");
  const StageId two = add("s2", "b");
  grant_bytes({{"a", 600}, {"b", 400}});
  begin_and_answer();
  auto policy = std::make_unique<ScriptedPolicy>();
  policy_ = policy.get();
  state_->use(std::move(policy), {.bytes = 500});
  grant_bytes({{"a", 50}, {"b", 450}});
  begin_and_answer();
  EXPECT_EQ(bytes(one), 50U);
  EXPECT_EQ(bytes(two), 400U);
  begin_and_answer();
  EXPECT_EQ(bytes(two), 450U);
}

TEST_F(CycleStateTest, ACycleAllocatesNoMemoryOnceAllAreKnown) {
  std::vector<StageId> stages;
  for (int i = 0; i < 50; ++i) stages.push_back(join("s" + std::to_string(i)));
  begin();
  for (const StageId stage : stages) {
    for (std::uint32_t flow = 0; flow < 4; ++flow)
      announce(stage, flow, "j" + std::to_string(flow));
    answer(stage);
  }
  policy_->grant = [](std::string_view, const Pair& each) -> Grant {
    return {.bytes = 1 + each.id % 7};
  };
  std::vector<FlowCounters> flows(4);
  std::uint64_t before = 0;
  for (int cycle = 0; cycle < 5; ++cycle) {
    if (cycle == 2) before = allocation_count();
    now_ += 50ms;
    ASSERT_EQ(state_->begin_cycle(now_).size(), stages.size());
    for (const StageId stage : stages) {
      for (std::uint32_t flow = 0; flow < 4; ++flow) {
        flows[flow].flow = flow;
        flows[flow].arrived_bytes += 10;
      }
      ASSERT_EQ(
          state_->on_report(stage, {.term = 7, .sequence = state_->sequence(), .applied = true},
                            flows, now_),
          AnswerResult::taken);
    }
  }
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(state_->pairs().size(), 200U);
}

}  // namespace
}  // namespace vpfs::allocation
