// What an aggregator tells its parent about the jobs of its stages.
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/allocation/cycle_state.h"
#include "test/control/allocation/cycle_fixture.h"
#include "test/control/allocation/largest.h"
#include "test/support/allocation_count.h"

namespace vpfs::allocation {
namespace {

class LiveJobsTest : public CycleStateTest {
 protected:
  std::map<std::string, LiveJob, std::less<>> jobs() {
    std::map<std::string, LiveJob, std::less<>> found;
    state_->for_each_job([&found](const LiveJob& job) { found.emplace(job.name, job); });
    return found;
  }
};

TEST_F(LiveJobsTest, TotalsAreTheSumsOverAllStages) {
  const StageId one = add("s1", "a");
  const StageId two = add("s2", "a");
  for (std::uint64_t i = 1; i <= 2; ++i) {
    begin();
    answer(one, {{.flow = 0, .arrived_bytes = 10 * i, .arrived_requests = i, .done_cost = 7 * i}});
    answer(two, {{.flow = 0, .arrived_bytes = 200 * i, .metadata_operations = i}});
  }
  const JobTotals totals = jobs().at("a").totals;
  EXPECT_EQ(totals.arrived, (Amounts{.bytes = 420, .operations = 2, .metadata_operations = 2}));
  EXPECT_EQ(totals.done, 14U);
}

TEST_F(LiveJobsTest, AReportOfSeveralCyclesCountsWhole) {
  const StageId stage = add("s1", "a");
  begin();
  const std::uint64_t sequence = state_->sequence();
  begin();
  begin();
  const std::vector<FlowCounters> flows = {{.flow = 0, .arrived_bytes = 301, .limited = 60ms}};
  ASSERT_EQ(
      state_->on_report(stage, {.term = 7, .sequence = sequence, .applied = true}, flows, now_),
      AnswerResult::taken);
  EXPECT_EQ(jobs().at("a").totals.arrived.bytes, 301U);
  EXPECT_EQ(jobs().at("a").totals.limited, Microseconds(60ms));
}

TEST_F(LiveJobsTest, TheTimeLimitedIsThatOfTheStageWhereItWasLongest) {
  const StageId one = add("s1", "a");
  const StageId two = add("s2", "a");
  begin();
  answer(one, {{.flow = 0, .limited = 10ms}});
  answer(two, {{.flow = 0, .limited = 30ms}});
  EXPECT_EQ(jobs().at("a").totals.limited, Microseconds(30ms));
  begin();
  EXPECT_EQ(jobs().at("a").totals.limited, Microseconds(30ms));
  answer(one, {{.flow = 0, .limited = 15ms}});
  answer(two, {{.flow = 0, .limited = 30ms}});
  EXPECT_EQ(jobs().at("a").totals.limited, Microseconds(35ms));
}

TEST_F(LiveJobsTest, TotalsNeverGoBackWhateverStagesDo) {
  StageId one = add("s1", "a");
  const StageId two = add("s2", "a");
  const auto done = [this] { return jobs().at("a").totals.done; };
  begin();
  answer(one, {{.flow = 0, .done_cost = 100}});
  answer(two, {{.flow = 0, .done_cost = 20}});
  EXPECT_EQ(done(), 120U);
  begin();
  answer(two, {{.flow = 0, .done_cost = 10}});  // a lie
  EXPECT_EQ(done(), 120U);
  state_->leave(one, now_);
  EXPECT_EQ(done(), 120U);
  one = join("s1", 2);  // another process, which counts from where it is
  begin();
  announce(one, 0, "a");
  answer(one, {{.flow = 0, .done_cost = 5000}});
  EXPECT_EQ(done(), 120U);
  begin();
  answer(one, {{.flow = 0, .done_cost = 5001}});
  answer(two, {{.flow = 0, .done_cost = kLargest}});
  EXPECT_EQ(done(), 121U);
}

TEST_F(LiveJobsTest, AJobIsLiveForAsLongAsACapOfItMayBeInForce) {
  const StageId one = add("s1", "a");
  add("s2", "b");
  grant_bytes({{"a", 400}, {"b", 600}});
  begin_and_answer();
  EXPECT_EQ(jobs().at("a").stages, 1U);
  state_->leave(one, now_);
  begin_and_answer();
  EXPECT_EQ(jobs().at("a").stages, 0U);
  now_ += 1200ms;
  begin();
  EXPECT_FALSE(jobs().contains("a"));
  EXPECT_TRUE(jobs().contains("b"));
}

TEST_F(LiveJobsTest, ANumberThatIsUsedAgainHasAnotherGenerationAndBeginsAtZero) {
  const StageId stage = add("s1", "a");
  begin();
  answer(stage, {{.flow = 0, .done_cost = 100}});
  const LiveJob before = jobs().at("a");
  EXPECT_EQ(before.totals.done, 100U);
  begin();
  answer(stage, {{.flow = 0, .ended = true}});
  EXPECT_TRUE(jobs().empty());
  announce(stage, 0, "b", 2);
  const LiveJob after = jobs().at("b");
  EXPECT_EQ(after.number, before.number);
  EXPECT_NE(after.generation, before.generation);
  EXPECT_EQ(after.totals, JobTotals{});
}

TEST_F(LiveJobsTest, AConfiguredJobIsLiveOnlyOnAStage) {
  state_->set_job("a", 9, {});
  EXPECT_TRUE(jobs().empty());
  const StageId stage = add("s1", "a");
  const LiveJob first = jobs().at("a");
  EXPECT_EQ(first.weight, 9U);
  begin();
  answer(stage, {{.flow = 0, .ended = true}});
  EXPECT_TRUE(jobs().empty());
  begin();
  announce(stage, 0, "a", 2);
  EXPECT_EQ(jobs().at("a").number, first.number);
  EXPECT_NE(jobs().at("a").generation, first.generation);
}

TEST_F(LiveJobsTest, AnAggregatorCountsAsTheStagesBelowIt) {
  const StageId aggregator = join("s1");
  const StageId stage = add("s2", "a");
  begin();
  state_->on_flow(aggregator, {.flow = 0, .generation = 1, .job = "a", .weight = 1, .stages = 25});
  answer(aggregator);
  answer(stage);
  begin();
  EXPECT_EQ(jobs().at("a").stages, 26U);
  EXPECT_EQ(pair(0).stages, 25U);
  EXPECT_EQ(pair(1).stages, 1U);
}

TEST_F(LiveJobsTest, JobsAreVisitedWithoutAllocatingMemory) {
  const StageId stage = add("s1", "a");
  begin();
  answer(stage, {{.flow = 0, .done_cost = 3}});
  const std::uint64_t before = allocation_count();
  Cost sum = 0;
  state_->for_each_job([&sum](const LiveJob& job) { sum += job.totals.done; });
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(sum, 3U);
}

}  // namespace
}  // namespace vpfs::allocation
