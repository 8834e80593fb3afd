#include "control/allocation/uplink.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/allocation_count.h"

namespace vpfs::allocation {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

// An aggregator with stages that have one flow each.
class UplinkTest : public testing::Test {
 protected:
  UplinkTest() {
    auto policy = std::make_unique<GivenPolicy>(Amounts{});
    GivenPolicy& given = *policy;
    state_ = std::make_unique<CycleState>(
        CycleSettings{.lease = 1s, .transit = 100ms, .silent_cycles = 50}, std::move(policy), 3);
    uplink_ = std::make_unique<Uplink>(*state_, given);
  }

  StageId add(const std::string& name, const std::string& job, std::uint32_t weight = 1) {
    const StageId stage = state_->join(name, 1, now_).value();
    begin();
    state_->on_flow(stage, {.flow = 0, .generation = 1, .job = job, .weight = weight});
    answer_all();
    return stage;
  }
  void begin() {
    now_ += 10ms;
    bytes_.clear();
    for (const Outgoing& each : state_->begin_cycle(now_)) {
      const std::uint32_t stage = each.stage.index;
      bytes_.resize(std::max<std::size_t>(bytes_.size(), stage + 1));
      open_.resize(std::max<std::size_t>(open_.size(), stage + 1));
      if (!each.grants.empty()) bytes_[stage] = each.grants.front().grant.bytes;
      open_[stage] = each.sequence;
    }
  }
  void answer(StageId stage, const std::vector<FlowCounters>& flows = {}) {
    const StageAnswer head = {
        .term = 3, .sequence = std::exchange(open_[stage.index], 0), .applied = true};
    ASSERT_EQ(state_->on_report(stage, head, flows, now_), AnswerResult::taken);
  }
  void answer_all() {
    for (std::uint32_t i = 0; i < open_.size(); ++i) {
      if (open_[i] > 0) answer(StageId{i});
    }
  }
  // A cycle of the parent, and one of its own.
  Uplink::Taken receive(const std::vector<FlowGrant>& grants, Duration lease = 1s) {
    const Uplink::Taken taken = uplink_->on_cycle(
        {.term = 9, .sequence = ++sequence_, .lease = lease, .complete = true, .grants = grants},
        now_);
    begin();
    return taken;
  }
  // The number of the flow that the parent knows the job by.
  std::uint32_t flow(const std::string& job) {
    std::uint32_t number = 0xffff;
    state_->for_each_job([&](const LiveJob& each) {
      if (each.name == job) number = each.number;
    });
    return number;
  }
  std::optional<std::uint64_t> bytes(StageId stage) { return bytes_[stage.index]; }

  TimePoint now_ = TimePoint{} + 100s;
  std::unique_ptr<CycleState> state_;
  std::unique_ptr<Uplink> uplink_;
  std::uint64_t sequence_ = 0;
  std::vector<std::optional<std::uint64_t>> bytes_;
  std::vector<std::uint64_t> open_;
};

TEST_F(UplinkTest, JobsAreAnnouncedOnceForEachConnection) {
  add("s1", "a", 4);
  add("s2", "a", 4);
  begin();
  const Uplink::Report report = uplink_->report();
  ASSERT_THAT(report.announced, SizeIs(1));
  EXPECT_EQ(report.announced[0].job, "a");
  EXPECT_EQ(report.announced[0].weight, 4U);
  EXPECT_EQ(report.announced[0].stages, 2U);
  ASSERT_THAT(report.flows, SizeIs(1));
  EXPECT_EQ(report.flows[0].flow, report.announced[0].flow);
  EXPECT_FALSE(report.pending);
  EXPECT_THAT(uplink_->report().announced, IsEmpty());
  EXPECT_THAT(uplink_->report().flows, IsEmpty());
  uplink_->connect();
  EXPECT_THAT(uplink_->report().announced, SizeIs(1));
  state_->set_job("a", 5, {});
  const Uplink::Report changed = uplink_->report();
  ASSERT_THAT(changed.announced, SizeIs(1));
  EXPECT_EQ(changed.announced[0].weight, 5U);
}

TEST_F(UplinkTest, OnlyJobsThatDidSomethingAreReported) {
  const StageId one = add("s1", "a");
  add("s2", "b");
  (void)uplink_->report();
  begin();
  answer(one, {{.flow = 0,
                .arrived_bytes = 30,
                .arrived_requests = 3,
                .metadata_operations = 1,
                .done_cost = 40,
                .limited = 2ms}});
  EXPECT_THAT(uplink_->report().flows, IsEmpty()) << "the first counters are the base";
  begin();
  answer(one, {{.flow = 0,
                .arrived_bytes = 35,
                .arrived_requests = 5,
                .metadata_operations = 2,
                .done_cost = 47,
                .limited = 3ms}});
  const Uplink::Report report = uplink_->report();
  ASSERT_THAT(report.flows, SizeIs(1));
  EXPECT_EQ(report.flows[0].flow, flow("a"));
  EXPECT_EQ(report.flows[0].arrived_bytes, 5U);
  EXPECT_EQ(report.flows[0].arrived_requests, 2U);
  EXPECT_EQ(report.flows[0].metadata_operations, 1U);
  EXPECT_EQ(report.flows[0].done_cost, 7U);
  EXPECT_EQ(report.flows[0].limited, Microseconds(1ms));
}

TEST_F(UplinkTest, AnEndedJobIsReportedBeforeTheOneThatHasItsNumber) {
  const StageId stage = add("s1", "a");
  const std::uint32_t number = flow("a");
  (void)uplink_->report();
  begin();
  answer(stage, {{.flow = 0, .ended = true}});
  state_->on_flow(stage, {.flow = 1, .generation = 1, .job = "b"});
  ASSERT_EQ(flow("b"), number);
  Uplink::Report report = uplink_->report();
  ASSERT_THAT(report.flows, SizeIs(2));
  EXPECT_TRUE(report.flows[0].ended);
  EXPECT_FALSE(report.flows[1].ended);
  ASSERT_THAT(report.announced, SizeIs(1));
  EXPECT_EQ(report.announced[0].job, "b");
  begin();
  answer(stage, {{.flow = 1}});
  begin();
  answer(stage, {{.flow = 1, .ended = true}});
  report = uplink_->report();
  ASSERT_THAT(report.flows, SizeIs(1));
  EXPECT_TRUE(report.flows[0].ended);
  EXPECT_THAT(uplink_->report().flows, IsEmpty());
}

TEST_F(UplinkTest, WhatTheParentGivesIsDividedAndAddsUpToTheCapacity) {
  const StageId one = add("s1", "a");
  const StageId two = add("s2", "a");
  const StageId three = add("s3", "b");
  (void)uplink_->report();
  EXPECT_EQ(receive({{flow("a"), {.bytes = 100}}, {flow("b"), {.bytes = 70}}}),
            Uplink::Taken::applied);
  EXPECT_EQ(bytes(one).value() + bytes(two).value(), 100U);
  EXPECT_EQ(bytes(three), 70U);
  EXPECT_FALSE(uplink_->report().pending);
}

TEST_F(UplinkTest, ALowerSumIsPendingUntilAllHaveIt) {
  const StageId one = add("s1", "a");
  const StageId two = add("s2", "b");
  (void)uplink_->report();
  (void)receive({{flow("a"), {.bytes = 100}}, {flow("b"), {.bytes = 70}}});
  answer_all();
  EXPECT_FALSE(uplink_->report().pending);
  (void)receive({{flow("a"), {.bytes = 10}}, {flow("b"), {.bytes = 80}}});
  EXPECT_EQ(bytes(two), 70U);
  answer(two);
  EXPECT_TRUE(uplink_->report().pending);
  answer(one);
  EXPECT_FALSE(uplink_->report().pending);
  (void)receive({{flow("a"), {.bytes = 10}}, {flow("b"), {.bytes = 80}}});
  EXPECT_EQ(bytes(two), 80U);
}

TEST_F(UplinkTest, WhatAJobHadThatHasEndedIsMissingInTheCapacity) {
  const StageId one = add("s1", "a");
  const StageId two = add("s2", "b");
  (void)uplink_->report();
  (void)receive({{flow("a"), {.bytes = 100}}, {flow("b"), {.bytes = 100}}});
  answer_all();
  // The sum is the same, but b holds more than its part for as long as it does not answer.
  (void)receive({{flow("a"), {.bytes = 150}}, {flow("b"), {.bytes = 50}}});
  answer(one, {{.flow = 0, .ended = true}});
  EXPECT_TRUE(uplink_->report().pending);  // the parent may not release all of a
  answer(two);
  EXPECT_FALSE(uplink_->report().pending);
}

TEST_F(UplinkTest, GrantsOfAJobThatHasGoneGoToNoOtherJob) {
  const StageId one = add("s1", "a");
  const StageId two = add("s2", "c");
  (void)uplink_->report();
  const std::uint32_t number = flow("a");
  begin();
  answer(one, {{.flow = 0, .ended = true}});
  answer(two);
  state_->on_flow(one, {.flow = 1, .generation = 1, .job = "b"});
  ASSERT_EQ(flow("b"), number);
  (void)receive({{number, {.bytes = 100}}, {flow("c"), {.bytes = 7}}, {4000, {.bytes = 5}}});
  EXPECT_EQ(bytes(one), 0U);
  EXPECT_EQ(bytes(two), 7U);
}

TEST_F(UplinkTest, AnOlderCycleAndARequestForAReportChangeNothing) {
  const StageId stage = add("s1", "a");
  (void)uplink_->report();
  (void)receive({{flow("a"), {.bytes = 100}}});
  answer_all();
  const std::vector<FlowGrant> other = {{flow("a"), {.bytes = 1}}};
  const auto take = [&](std::uint64_t term, std::uint64_t sequence, bool complete) {
    return uplink_->on_cycle(
        {.term = term, .sequence = sequence, .lease = 1s, .complete = complete, .grants = other},
        now_);
  };
  EXPECT_EQ(take(9, sequence_, true), Uplink::Taken::outdated);
  EXPECT_EQ(take(8, sequence_ + 5, true), Uplink::Taken::outdated);
  EXPECT_EQ(take(9, sequence_ + 1, false), Uplink::Taken::asked);
  begin();
  EXPECT_EQ(bytes(stage), 100U);
}

TEST_F(UplinkTest, CapsEndWithTheLeaseOfTheParent) {
  const StageId stage = add("s1", "a");
  (void)uplink_->report();
  const TimePoint received = now_;
  (void)receive({{flow("a"), {.bytes = 100}}});
  EXPECT_EQ(uplink_->lease_end(), received + 1s);
  answer_all();
  now_ = received + 1s;
  uplink_->on_turn(now_);
  EXPECT_FALSE(uplink_->in_force());
  begin();
  EXPECT_EQ(bytes(stage), std::nullopt);
  answer_all();
  EXPECT_FALSE(uplink_->report().pending);
}

TEST_F(UplinkTest, AParentMayTakeBackWhatItGave) {
  const StageId stage = add("s1", "a");
  (void)uplink_->report();
  (void)receive({{flow("a"), {.bytes = 100}}});
  answer_all();
  EXPECT_EQ(receive({}, 0s), Uplink::Taken::applied);
  EXPECT_FALSE(uplink_->in_force());
  EXPECT_EQ(bytes(stage), std::nullopt);
  EXPECT_TRUE(uplink_->report().pending);
  answer_all();
  EXPECT_FALSE(uplink_->report().pending);
}

TEST_F(UplinkTest, WhatWasGivenStaysOverAnotherConnection) {
  const StageId stage = add("s1", "a");
  (void)uplink_->report();
  (void)receive({{flow("a"), {.bytes = 100}}});
  answer_all();
  uplink_->connect();
  EXPECT_FALSE(uplink_->report().pending);
  begin();
  EXPECT_EQ(bytes(stage), 100U);
}

TEST_F(UplinkTest, ItAllocatesNoMemoryOnceAllAreKnown) {
  for (int i = 0; i < 20; ++i) add("s" + std::to_string(i), "j" + std::to_string(i % 5));
  begin();
  answer_all();
  (void)uplink_->report();
  std::vector<FlowGrant> grants;
  state_->for_each_job([&grants](const LiveJob& job) {
    grants.push_back({job.number, {.bytes = 1000, .elsewhere_total = 5}});
  });
  std::vector<FlowCounters> flows = {{.flow = 0}};
  std::uint64_t before = 0;
  for (std::uint64_t cycle = 0; cycle < 10; ++cycle) {
    if (cycle == 5) before = allocation_count();
    now_ += 10ms;
    grants[cycle % 5].grant.bytes = 1000 + cycle;
    EXPECT_EQ(
        uplink_->on_cycle(
            {.term = 9, .sequence = ++sequence_, .lease = 1s, .complete = true, .grants = grants},
            now_),
        Uplink::Taken::applied);
    ++flows[0].arrived_bytes;
    const std::uint64_t sequence = state_->begin_cycle(now_).front().sequence;
    for (std::uint32_t i = 0; i < 20; ++i) {
      const StageAnswer head = {.term = 3, .sequence = sequence, .applied = true};
      ASSERT_EQ(state_->on_report(StageId{i}, head, flows, now_), AnswerResult::taken);
    }
    (void)uplink_->report();
  }
  EXPECT_EQ(allocation_count(), before);
}

}  // namespace
}  // namespace vpfs::allocation
