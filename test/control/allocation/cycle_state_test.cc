#include "control/allocation/cycle_state.h"

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/allocation_count.h"

namespace vpfs::allocation {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

// Grants what the test says; otherwise nothing.
class ScriptedPolicy final : public Policy {
 public:
  Result<void> allocate(std::span<const Pair> pairs, Duration period, const Amounts& less,
                        std::span<const std::string_view> jobs, std::span<Grant> grants) override {
    last_period = period;
    last_less = less;
    if (!problem.empty()) return fail(problem);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (grant) grants[i] = grant(jobs[pairs[i].job], pairs[i]);
    }
    return {};
  }

  std::function<Grant(std::string_view job, const Pair& pair)> grant;
  std::string problem;
  Duration last_period = {};
  Amounts last_less;
};

CycleSettings small_settings() {
  CycleSettings settings;
  settings.capacity = {.bytes = 1000};
  settings.period = 50ms;
  settings.deadline = 25ms;
  settings.lease = 1s;
  settings.transit = 200ms;
  settings.silent_cycles = 4;
  return settings;
}

class CycleStateTest : public testing::Test {
 protected:
  struct Sent {
    std::uint64_t sequence = 0;
    Duration lease = {};
    bool complete = false;
    bool close = false;
    std::vector<FlowGrant> grants;
  };

  CycleStateTest() { start(small_settings()); }

  void start(const CycleSettings& settings, std::uint64_t term = 7) {
    auto policy = std::make_unique<ScriptedPolicy>();
    policy_ = policy.get();
    state_ = std::make_unique<CycleState>(settings, std::move(policy), term);
  }

  StageId join(const std::string& name, std::uint64_t incarnation = 1) {
    const Result<StageId> stage = state_->join(name, incarnation, now_);
    EXPECT_TRUE(stage) << stage.error().message;
    return stage.value_or(StageId{});
  }
  void announce(StageId stage, std::uint32_t flow, const std::string& job,
                std::uint32_t generation = 1, std::uint32_t weight = 1) {
    state_->on_flow(stage, {.flow = flow, .generation = generation, .job = job, .weight = weight});
  }

  // One period later.
  void begin(bool want_report = true) {
    now_ += 50ms;
    keep(state_->begin_cycle(now_, want_report));
  }
  void ask() {
    now_ += 1ms;
    keep(state_->ask(now_));
  }
  void keep(std::span<const Outgoing> outgoing) {
    sent_.clear();
    for (const Outgoing& each : outgoing) {
      sent_[each.stage.index] = {.sequence = each.sequence,
                                 .lease = each.lease,
                                 .complete = each.complete,
                                 .close = each.close,
                                 .grants = {each.grants.begin(), each.grants.end()}};
    }
  }
  [[nodiscard]] bool is_sent(StageId stage) const { return sent_.contains(stage.index); }

  AnswerResult answer(StageId stage, const std::vector<FlowCounters>& flows = {},
                      bool applied = true) {
    const Answer head = {.term = state_->term(),
                         .sequence = state_->sequence(),
                         .applied = applied,
                         .problem = applied ? "" : "no caps here"};
    return state_->on_report(stage, head, flows, now_ + 1ms);
  }
  // A stage with one flow, number 0, that has reported once.
  StageId add(const std::string& name, const std::string& job, std::uint64_t incarnation = 1) {
    const StageId stage = join(name, incarnation);
    introduce(stage, job);
    return stage;
  }
  void introduce(StageId stage, const std::string& job) {
    ask();
    for (const auto& [other, sent] : sent_) {
      if (other == stage.index) announce(stage, 0, job);
      EXPECT_EQ(answer(StageId{other}, other == stage.index ? std::vector<FlowCounters>{{.flow = 0}}
                                                            : std::vector<FlowCounters>{}),
                AnswerResult::taken);
    }
  }
  void begin_and_answer() {
    begin();
    for (const auto& [stage, sent] : sent_) {
      if (!sent.close) EXPECT_EQ(answer(StageId{stage}), AnswerResult::taken);
    }
  }

  // Each job on each stage gets so many bytes.
  void grant_bytes(std::map<std::string, std::uint64_t, std::less<>> bytes) {
    policy_->grant = [bytes = std::move(bytes)](std::string_view job, const Pair&) -> Grant {
      return {.bytes = bytes.find(job)->second};
    };
  }
  // The bytes that flow 0 of the stage was sent in this cycle.
  std::optional<std::uint64_t> bytes(StageId stage) {
    const Sent& sent = sent_[stage.index];
    return sent.grants.empty() ? std::nullopt : sent.grants.front().grant.bytes;
  }
  const Pair& pair(std::size_t row) const { return state_->pairs()[row]; }
  const StageStatus& status(StageId stage) const { return state_->status(stage); }

  TimePoint now_ = TimePoint{} + 100s;
  ScriptedPolicy* policy_ = nullptr;
  std::unique_ptr<CycleState> state_;
  std::map<std::uint32_t, Sent> sent_;
};

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
  // Metadata operations are not divided, so nobody waits for them.
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
  begin_and_answer();  // asks only
  EXPECT_FALSE(sent_[stage.index].complete);
  begin();
  answer(other);
  announce(stage, 0, "a");
  // Four cycles have begun since its last counters.
  answer(stage, {{.flow = 0, .arrived_bytes = 1400, .done_cost = 1300}});
  begin();
  EXPECT_EQ(policy_->last_less.bytes, 0U);
  EXPECT_EQ(bytes(stage), 600U);
  EXPECT_EQ(pair(0).id, id);
  EXPECT_EQ(pair(0).done, 1300U);
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
    EXPECT_EQ(pair(0).arrived.bytes, i == 0 ? kLargest : 0);
    EXPECT_LE(pair(0).limited, 100ms);
    announce(stage, 0, "a", static_cast<std::uint32_t>(i) + 2);  // from zero again
    answer(stage, {{.flow = 0}});
  }
}

TEST_F(CycleStateTest, FlowsThatCannotBeAreIgnored) {
  const StageId stage = add("s1", "a");
  announce(stage, 4096, "b");
  announce(stage, 0xffffffff, "b");
  announce(stage, 1, "");
  EXPECT_EQ(status(stage).lies, 3U);
  begin();
  answer(stage, {{.flow = 1, .done_cost = 5}, {.flow = 0xffffffff, .ended = true}});
  EXPECT_EQ(status(stage).lies, 5U);
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
  answer(stage);
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

TEST_F(CycleStateTest, TotalsOfServiceElsewhereWaitForNobody) {
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
  EXPECT_EQ(pair(0).most, Amounts{});
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

TEST_F(CycleStateTest, ASecondStageOfTheSameNameIsRefused) {
  const StageId stage = join("s1");
  const Result<StageId> second = state_->join("s1", 2, now_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("\"s1\" is connected already"));
  state_->leave(stage, now_);
  EXPECT_TRUE(state_->join("s1", 2, now_));
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
