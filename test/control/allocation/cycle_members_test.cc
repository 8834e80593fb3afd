#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/allocation/cycle_state.h"
#include "test/control/allocation/cycle_fixture.h"
#include "test/control/allocation/largest.h"

namespace vpfs::allocation {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(CycleStateTest, PairsAscendByTheNamesOfJobsAndStages) {
  const StageId second = join("s2");
  const StageId first = join("s1");
  announce(second, 0, "b");
  announce(second, 1, "a");
  announce(first, 0, "b");
  ask();
  answer(first);
  answer(second);
  begin();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
  for (const Pair& each : state_->pairs()) order.emplace_back(each.job, each.stage);
  using P = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_THAT(order, ElementsAre(P{0, 1}, P{1, 0}, P{1, 1}));
  EXPECT_THAT(state_->job_names(), ElementsAre("a", "b"));
  // Each stage gets its own flows.
  EXPECT_EQ(sent_[second.index].grants.size(), 2U);
  EXPECT_EQ(sent_[first.index].grants.size(), 1U);
}

TEST_F(CycleStateTest, AStageThatReturnsGoesOnWithItsCapsAndCounters) {
  StageId stage = add("s1", "a", 5);
  const StageId other = add("s2", "b");
  grant_bytes({{"a", 600}, {"b", 400}});
  begin();
  answer(stage, {{.flow = 0, .arrived_bytes = 1000, .done_cost = 900}});
  answer(other);
  const std::uint32_t id = pair(0).id;
  state_->leave(stage, now_);
  begin_and_answer();
  stage = join("s1", 5);
  begin();
  EXPECT_FALSE(sent_[stage.index].complete);
  answer(other);
  announce(stage, 0, "a");
  // Two cycles have begun since its last counters.
  answer(stage, {{.flow = 0, .arrived_bytes = 1400, .done_cost = 1300}});
  begin();
  EXPECT_EQ(policy_->last_less.bytes, 0U);
  EXPECT_EQ(bytes(stage), 600U);
  EXPECT_EQ(pair(0).id, id);
  EXPECT_EQ(pair(0).arrived.bytes, 200U);
  EXPECT_EQ(pair(0).done, 1300U);
}

// Numbers and generations of the process before mean nothing in the one that has taken over.
TEST_F(CycleStateTest, AStageThatReturnsWithOtherNumbersDoesNotCountForAnotherJob) {
  StageId stage = join("s1", 5);
  ask();
  announce(stage, 0, "a", 0);
  announce(stage, 1, "b", 0);
  answer(stage, {{.flow = 0}, {.flow = 1}});
  begin();
  answer(stage, {{.flow = 0, .arrived_bytes = 9000, .done_cost = 9000},
                 {.flow = 1, .arrived_bytes = 100, .done_cost = 100}});
  state_->leave(stage, now_);
  stage = join("s1", 5);
  ask();
  announce(stage, 0, "b", 0);
  announce(stage, 1, "a", 0);
  answer(stage, {{.flow = 0, .arrived_bytes = 100, .done_cost = 100},
                 {.flow = 1, .arrived_bytes = 9000, .done_cost = 9000}});
  begin();
  EXPECT_EQ(state_->status(stage).lies, 0U);
  EXPECT_EQ(pair(0).done, 9000U);
  EXPECT_EQ(pair(1).done, 100U);
  answer(stage, {{.flow = 0, .arrived_bytes = 150, .done_cost = 150},
                 {.flow = 1, .arrived_bytes = 9007, .done_cost = 9007}});
  begin();
  EXPECT_EQ(pair(0).done, 9007U);
  EXPECT_EQ(pair(1).done, 150U);
}

TEST_F(CycleStateTest, AnotherIncarnationHasNoCreditAndNoCapsOfTheOneBefore) {
  StageId stage = add("s1", "a", 5);
  grant_bytes({{"a", 600}});
  begin();
  answer(stage, {{.flow = 0, .arrived_bytes = 1000, .done_cost = 900}});
  state_->leave(stage, now_);
  stage = join("s1", 6);
  ask();
  announce(stage, 0, "a");
  answer(stage, {{.flow = 0, .arrived_bytes = 5000, .done_cost = 5000}});
  begin();
  EXPECT_EQ(pair(0).arrived.bytes, 0U);
  EXPECT_EQ(pair(0).done, 900U);
  EXPECT_EQ(policy_->last_less.bytes, 600U);  // the process before may still run
  EXPECT_EQ(bytes(stage), 400U);
  answer(stage, {{.flow = 0, .arrived_bytes = 5300, .done_cost = 5100}});
  begin_and_answer();
  EXPECT_EQ(pair(0).arrived.bytes, 300U);
  EXPECT_EQ(pair(0).done, 1000U);
  EXPECT_EQ(bytes(stage), 400U);
  now_ += 1200ms;
  begin();
  EXPECT_EQ(policy_->last_less.bytes, 0U);
  EXPECT_EQ(bytes(stage), 600U);
}

TEST_F(CycleStateTest, CountersThatCannotBeCountAsNothing) {
  const StageId stage = add("s1", "a");
  const auto report = [&](std::uint64_t arrived, std::uint64_t done) {
    begin();
    answer(stage, {{.flow = 0, .arrived_bytes = arrived, .done_cost = done}});
    begin_and_answer();
    // The second report had no counters, so this is the sum.
    return pair(0).done;
  };
  EXPECT_EQ(report(100, 100), 100U);
  EXPECT_EQ(report(50, 150), 100U);
  EXPECT_EQ(status(stage).lies, 1U);
  EXPECT_THAT(status(stage).problem, HasSubstr("flow 0: arrived_bytes went back from 100 to 50"));
  EXPECT_EQ(report(60, 160), 110U);
  EXPECT_EQ(report(70, kLargest), 110U);
  EXPECT_EQ(status(stage).lies, 2U);
  EXPECT_THAT(status(stage).problem, HasSubstr("done_cost jumped"));
  EXPECT_EQ(report(80, 170), 110U);  // back again is a lie, too
  EXPECT_EQ(report(90, 180), 120U);
  EXPECT_EQ(status(stage).lies, 3U);
}

TEST_F(CycleStateTest, TotalsDoNotOverflow) {
  CycleSettings settings = small_settings();
  settings.most_each_second = kLargest;
  start(settings);
  const StageId stage = add("s1", "a");
  for (int i = 0; i < 3; ++i) {
    begin();
    answer(stage, {{.flow = 0,
                    .arrived_bytes = kLargest,
                    .arrived_requests = kLargest,
                    .metadata_operations = kLargest,
                    .done_cost = kLargest,
                    .limited = Microseconds(kLargest)}});
    begin();
    EXPECT_EQ(pair(0).done, kLargest);
    EXPECT_EQ(pair(0).arrived.bytes, kLargest);
    EXPECT_LE(pair(0).limited, 100ms);
    announce(stage, 0, "a", static_cast<std::uint32_t>(i) + 2);  // from zero again
    answer(stage, {{.flow = 0}});
  }
}

TEST_F(CycleStateTest, FlowsThatCannotBeAreIgnored) {
  const StageId stage = add("s1", "a");
  announce(stage, static_cast<std::uint32_t>(CycleSettings().most_flows), "b");
  announce(stage, 0xffffffff, "b");
  announce(stage, 1, "");
  EXPECT_EQ(status(stage).lies, 3U);
  begin();
  answer(stage, {{.flow = 1, .done_cost = 5}, {.flow = 0xffffffff, .ended = true}});
  EXPECT_EQ(status(stage).lies, 4U);
  EXPECT_THAT(status(stage).problem, HasSubstr("was not announced"));
  begin();
  EXPECT_EQ(state_->pairs().size(), 1U);
}

TEST_F(CycleStateTest, AnEndedFlowIsForgottenAndItsCapIsFree) {
  const StageId one = add("s1", "a");
  const StageId two = add("s2", "b");
  grant_bytes({{"a", 900}, {"b", 100}, {"c", 900}});
  begin_and_answer();
  const std::uint32_t ended = pair(0).id;
  begin();
  answer(two);
  answer(one, {{.flow = 0, .ended = true}});
  announce(one, 1, "c");
  begin();
  ASSERT_EQ(state_->pairs().size(), 2U);
  EXPECT_THAT(state_->job_names(), ElementsAre("b", "c"));
  ASSERT_EQ(sent_[one.index].grants.size(), 1U);
  EXPECT_EQ(sent_[one.index].grants[0].flow, 1U);
  EXPECT_EQ(bytes(one), 900U);
  EXPECT_NE(pair(1).id, ended);  // the policy must see that it is gone
  answer(two);
  answer(one, {{.flow = 0, .done_cost = 9}});
  EXPECT_EQ(status(one).lies, 1U);
  announce(two, 1, "d");
  policy_->grant = nullptr;
  begin();
  EXPECT_EQ(pair(2).id, ended);
}

TEST_F(CycleStateTest, ANumberThatStandsForAnotherJobEndsTheOneBefore) {
  const StageId stage = add("s1", "a");
  grant_bytes({{"a", 1000}, {"b", 1000}});
  begin();
  announce(stage, 0, "b", 2);
  answer(stage, {{.flow = 0, .arrived_bytes = 70}});
  begin();
  EXPECT_THAT(state_->job_names(), ElementsAre("b"));
  EXPECT_EQ(pair(0).arrived.bytes, 70U);  // all that it did was since the last report
  EXPECT_EQ(bytes(stage), 1000U);
}

TEST_F(CycleStateTest, ANumberMayEndAndBeAnnouncedAgainInOneReport) {
  const StageId stage = add("s1", "a");
  grant_bytes({{"a", 1000}, {"b", 1000}});
  begin();
  announce(stage, 0, "b", 2);
  answer(stage, {{.flow = 0, .ended = true}, {.flow = 0, .arrived_bytes = 70}});
  EXPECT_EQ(status(stage).lies, 0U);
  begin();
  EXPECT_THAT(state_->job_names(), ElementsAre("b"));
  EXPECT_EQ(pair(0).arrived.bytes, 70U);
  answer(stage, {{.flow = 0, .ended = true}});
  begin();
  EXPECT_TRUE(state_->pairs().empty());
}

TEST_F(CycleStateTest, AJobHasOneFlowOnAStage) {
  const StageId stage = add("s1", "a");
  grant_bytes({{"a", 1000}});
  begin();
  announce(stage, 1, "a");
  answer(stage);
  begin();
  ASSERT_EQ(sent_[stage.index].grants.size(), 1U);
  EXPECT_EQ(sent_[stage.index].grants[0].flow, 1U);
}

TEST_F(CycleStateTest, OnlyTheAnswerToWhatWasSentLastIsTaken) {
  const StageId stage = add("s1", "a");
  begin();
  const auto report = [&](std::uint64_t term, std::uint64_t sequence) {
    const std::vector<FlowCounters> flows = {{.flow = 0, .done_cost = 100}};
    return state_->on_report(stage, {.term = term, .sequence = sequence, .applied = true}, flows,
                             now_);
  };
  EXPECT_EQ(report(6, state_->sequence()), AnswerResult::other_term);
  EXPECT_EQ(report(8, state_->sequence()), AnswerResult::other_term);
  EXPECT_EQ(report(7, state_->sequence() + 1), AnswerResult::unexpected);
  EXPECT_EQ(report(7, state_->sequence() - 1), AnswerResult::unexpected);
  EXPECT_EQ(status(stage).refused_answers, 4U);
  EXPECT_EQ(report(7, state_->sequence()), AnswerResult::taken);
  EXPECT_EQ(report(7, state_->sequence()), AnswerResult::unexpected);
  begin();
  EXPECT_EQ(pair(0).done, 100U);
}

TEST_F(CycleStateTest, AnAnswerUnderTheTermBeforeIsTaken) {
  const StageId stage = add("s1", "a");
  begin();
  const std::uint64_t sequence = state_->sequence();
  state_->set_term(9);
  const auto report = [&](std::uint64_t term) {
    return state_->on_report(stage, {.term = term, .sequence = sequence, .applied = true}, {},
                             now_);
  };
  EXPECT_EQ(report(9), AnswerResult::other_term);
  EXPECT_EQ(report(7), AnswerResult::taken);
  begin();
  EXPECT_EQ(state_->on_report(stage, {.term = 7, .sequence = state_->sequence(), .applied = true},
                              {}, now_),
            AnswerResult::other_term);
}

TEST_F(CycleStateTest, ARefusedCycleIsOverUnderAnyTerm) {
  const StageId stage = add("s1", "a");
  begin();
  state_->set_term(9);
  state_->on_refusal(stage, state_->sequence(), "no", now_);
  EXPECT_EQ(state_->unanswered(), 0U);
  EXPECT_EQ(status(stage).not_applied, 1U);
  EXPECT_EQ(status(stage).problem, "no");
}

TEST_F(CycleStateTest, AReportOfSeveralCyclesIsDivided) {
  const StageId stage = add("s1", "a");
  begin_and_answer();
  begin();
  const std::uint64_t sequence = state_->sequence();
  begin();
  begin();
  const std::vector<FlowCounters> flows = {
      {.flow = 0, .arrived_bytes = 301, .done_cost = 300, .limited = 60ms}};
  EXPECT_EQ(
      state_->on_report(stage, {.term = 7, .sequence = sequence, .applied = true}, flows, now_),
      AnswerResult::taken);
  begin();
  EXPECT_EQ(pair(0).arrived.bytes, 101U);
  EXPECT_EQ(pair(0).limited, 20ms);
  EXPECT_EQ(pair(0).done, 300U);
  EXPECT_EQ(policy_->last_period, 50ms);
  // Without another report the last one counts.
  begin();
  EXPECT_EQ(pair(0).arrived.bytes, 101U);
}

TEST_F(CycleStateTest, AConfiguredWeightGoesBeforeTheOneThatIsAnnounced) {
  const StageId stage = join("s1");
  state_->set_job("a", 9, {.bytes = 77});
  ask();
  announce(stage, 0, "a", 1, 3);
  announce(stage, 1, "b", 1, 0);
  announce(stage, 2, "c", 1, 4);
  answer(stage);
  begin();
  EXPECT_EQ(pair(0).weight, 9U);
  EXPECT_EQ(pair(0).most, Amounts{.bytes = 77});
  EXPECT_EQ(pair(1).weight, 1U);
  EXPECT_EQ(pair(2).weight, 4U);
  EXPECT_EQ(pair(2).most, Amounts{});
  state_->remove_job("a");
  state_->remove_job("nobody");
  begin();
  EXPECT_EQ(pair(0).weight, 3U);
  EXPECT_EQ(pair(0).most, Amounts{});
}

TEST_F(CycleStateTest, ASecondStageOfTheSameNameIsRefused) {
  const StageId stage = join("s1");
  const Result<StageId> second = state_->join("s1", 2, now_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("\"s1\" is connected already"));
  state_->leave(stage, now_);
  EXPECT_TRUE(state_->join("s1", 2, now_));
}

}  // namespace
}  // namespace vpfs::allocation
