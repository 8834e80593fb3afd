#include "control/site/site_jobs.h"

#include <gtest/gtest.h>

#include "test/control/coordinator/live_book.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using allocation::Amounts;

// Remembers no more than that there are pairs.
class NoPolicy final : public allocation::AllocationPolicy {
 public:
  [[nodiscard]] Result<void> allocate(std::span<const allocation::Pair> /*pairs*/,
                                      Duration /*period*/, const Amounts& /*less*/,
                                      std::span<const std::string_view> /*names*/,
                                      std::span<allocation::Grant> /*grants*/) override {
    return {};
  }
};

// One stage, which announces what the test says.
class SiteJobsTest : public ::testing::Test {
 protected:
  SiteJobsTest() : state_({}, std::make_unique<NoPolicy>(), 1), jobs_(state_) {
    stage_ = *state_.join("ds1", 1, now_);
    cycle();
  }
  void announce(const std::string& name, const std::string& by = "", std::uint32_t weight = 1) {
    control::Flows flows;
    control::Flow& flow = *flows.add_flows();
    flow.set_id(next_++);
    flow.set_generation(1);
    flow.set_name(name);
    flow.set_template_(by);
    flow.set_weight(weight);
    jobs_.announced(stage_, flows);
  }
  void end(std::uint32_t flow) { ended_.push_back({.flow = flow, .ended = true}); }
  void cycle() {
    now_ += 50ms;
    (void)state_.begin_cycle(now_);
    (void)state_.on_report(stage_, {.term = 1, .sequence = state_.sequence(), .applied = true},
                           std::exchange(ended_, {}), now_);
    now_ += 50ms;
    (void)state_.begin_cycle(now_);
    (void)state_.on_report(stage_, {.term = 1, .sequence = state_.sequence(), .applied = true}, {},
                           now_);
  }
  allocation::Pair pair(const std::string& name) {
    cycle();
    for (const allocation::Pair& each : state_.pairs()) {
      if (state_.job_names()[each.job] == name) return each;
    }
    ADD_FAILURE() << name << " has no pair";
    return {};
  }
  void use(const std::vector<JobConfig>& file = {}) {
    jobs_.use(entitlements_of(file, book_.composed()));
  }

  TimePoint now_ = TimePoint(100s);
  LiveBook book_;
  allocation::CycleState state_;
  SiteJobs jobs_;
  allocation::StageId stage_;
  std::uint32_t next_ = 0;
  std::vector<allocation::FlowCounters> ended_;
};

TEST_F(SiteJobsTest, ARuleEntitlesItsVirtualPfsUntilItStops) {
  book_.start("gold", "jobid=a", {"weight=4", "total_rate=1MiB/s", "total_operations=10"});
  use();
  announce("gold");
  EXPECT_EQ(pair("gold").weight, 4U);
  EXPECT_EQ(pair("gold").most, (Amounts{.bytes = kMiB, .operations = 10}));
  book_.stop("gold");
  use();
  EXPECT_EQ(pair("gold").weight, 1U) << "as the stage announces it";
  EXPECT_EQ(pair("gold").most, Amounts());
}

TEST_F(SiteJobsTest, ARuleWithoutAWeightLeavesThatToTheStages) {
  book_.start("gold", "jobid=a", {"total_rate=1MiB/s"});
  use();
  announce("gold", "", 7);
  EXPECT_EQ(pair("gold").weight, 7U);
  EXPECT_EQ(pair("gold").most.bytes, kMiB);
}

TEST_F(SiteJobsTest, ALiveRuleCountsBeforeTheFileWhichIsBackAfterIt) {
  const std::vector<JobConfig> file = {
      {.name = "gold", .weight = 2, .most = {.bytes = 5 * kMiB, .operations = 50}}};
  announce("gold");
  use(file);
  EXPECT_EQ(pair("gold").weight, 2U);
  EXPECT_EQ(pair("gold").most.bytes, 5 * kMiB);
  book_.start("gold", "jobid=a", {"total_rate=1MiB/s"});
  use(file);
  EXPECT_EQ(pair("gold").weight, 2U) << "the rule says nothing of it";
  EXPECT_EQ(pair("gold").most, (Amounts{.bytes = kMiB, .operations = 50}));
  book_.stop("gold");
  use(file);
  EXPECT_EQ(pair("gold").most.bytes, 5 * kMiB);
}

TEST_F(SiteJobsTest, ATemplateEntitlesWhatItMakesBeforeAndAfter) {
  announce("job-1", "job-{jobid}");
  EXPECT_EQ(pair("job-1").most, Amounts());
  book_.start("job-{jobid}", "jobid=*", {"total_rate=1MiB/s", "weight=3"});
  use();
  EXPECT_EQ(pair("job-1").most.bytes, kMiB) << "it was there already";
  EXPECT_EQ(pair("job-1").weight, 3U);
  announce("job-2", "job-{jobid}");
  EXPECT_EQ(pair("job-2").most.bytes, kMiB);
  announce("job-3", "other-{jobid}");
  EXPECT_EQ(pair("job-3").most, Amounts()) << "another template made it";
  book_.stop("job-{jobid}");
  use();
  EXPECT_EQ(pair("job-1").most, Amounts());
  EXPECT_EQ(pair("job-2").weight, 1U);
}

TEST_F(SiteJobsTest, WhatItIsGivenByNameCountsBeforeItsTemplate) {
  announce("job-1", "job-{jobid}");
  book_.start("job-{jobid}", "jobid=*", {"total_rate=1MiB/s"});
  use({{.name = "job-1", .weight = {}, .most = {.bytes = 9 * kMiB}}});
  EXPECT_EQ(pair("job-1").most.bytes, 9 * kMiB);
  use();
  EXPECT_EQ(pair("job-1").most.bytes, kMiB);
}

TEST_F(SiteJobsTest, VirtualPfsesOfTemplatesAreForgottenOnceNoStageHasThem) {
  book_.start("job-{jobid}", "jobid=*", {"total_rate=1MiB/s"});
  use();
  announce("job-1", "job-{jobid}");
  announce("job-2", "job-{jobid}");
  cycle();
  jobs_.sweep();
  jobs_.sweep();
  EXPECT_EQ(jobs_.made(), 2U);
  end(0);
  cycle();
  jobs_.sweep();
  EXPECT_EQ(jobs_.made(), 2U) << "it may just have come";
  jobs_.sweep();
  EXPECT_EQ(jobs_.made(), 1U);
  EXPECT_EQ(pair("job-2").most.bytes, kMiB);
  announce("job-1", "job-{jobid}");
  EXPECT_EQ(pair("job-1").most.bytes, kMiB) << "back again";
}

TEST_F(SiteJobsTest, FlowsThatTheCyclesDoNotTakeLeaveNothing) {
  announce(std::string(2 * kKiB, 'x'), "x{jobid}");
  announce("", "x{jobid}");
  next_ = static_cast<std::uint32_t>(allocation::CycleSettings().most_flows);
  announce("x1", "x{jobid}");
  EXPECT_EQ(jobs_.made(), 0U);
  EXPECT_EQ(state_.status(stage_).lies, 3U);
}

TEST_F(SiteJobsTest, ATemplateWithATooLongNameEntitlesNothing) {
  announce("x1", std::string(2 * kKiB, 'x'));
  EXPECT_EQ(jobs_.made(), 0U);
  EXPECT_EQ(pair("x1").weight, 1U);
}

}  // namespace
}  // namespace vpfs::coordinator
