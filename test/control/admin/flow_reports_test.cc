#include "control/admin/flow_reports.h"

#include <algorithm>
#include <optional>

#include "test/control/admin/admin_rig.h"

namespace vpfs::control {
namespace {

class FlowReportsTest : public ::testing::Test {
 protected:
  void look() {
    flows_.Clear();
    report_.Clear();
    reports_.add(stage_, stage_.now(), flows_, report_);
  }
  [[nodiscard]] std::optional<Flow> announced(const std::string& name) const {
    for (const Flow& each : flows_.flows()) {
      if (each.name() == name) return each;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::vector<FlowReport> reported(std::uint32_t flow) const {
    std::vector<FlowReport> found;
    std::ranges::copy_if(report_.flows(), std::back_inserter(found),
                         [&](const FlowReport& each) { return each.flow() == flow; });
    return found;
  }

  const stage::Config config_ = file_config();
  StageOfTest stage_{config_};
  FlowReports reports_;
  Flows flows_;
  Report report_;
};

TEST_F(FlowReportsTest, EachFlowIsAnnouncedOnceWithItsNumberAndCounters) {
  const stage::Place place = stage_.find("a");
  stage_.serve(place);
  look();
  const auto flow = announced("job-a");
  ASSERT_TRUE(flow);
  EXPECT_EQ(flow->id(), std::to_underlying(place.id.app));
  EXPECT_EQ(flow->generation(), place.id.generation);
  EXPECT_EQ(flow->jobid(), "a");
  EXPECT_EQ(flow->weight(), 1U);
  ASSERT_EQ(reported(flow->id()).size(), 1U);
  const FlowReport first = reported(flow->id()).front();
  EXPECT_EQ(first.arrived_requests(), 1U);
  EXPECT_EQ(first.done_bytes(), 1000U);
  EXPECT_EQ(first.done_cost(), 1000U);
  EXPECT_EQ(reports_.find(flow->id()), place.id);
  look();
  EXPECT_EQ(flows_.flows_size(), 0);
  EXPECT_EQ(report_.flows_size(), 0) << "nothing has changed";
}

TEST_F(FlowReportsTest, AFlowSaysWhichTemplateMadeItAndWhoseItsJobIs) {
  stage::Config config = config_;
  config.jobs = {{.jobid = "one", .clients = {"10.0.0.1"}, .uids = {1001}},
                 {.jobid = "two", .clients = {"10.0.0.1"}, .uids = {1001, 1002}},
                 {.jobid = "all", .clients = {"10.0.0.1"}, .uids = {}}};
  stage_.reconfigure(config, stage_.now());
  for (const char* const job : {"one", "two", "all", "none"}) (void)stage_.find(job);
  look();
  ASSERT_TRUE(announced("job-one") && announced("default"));
  EXPECT_EQ(announced("job-one")->template_(), "job-{jobid}");
  EXPECT_EQ(announced("default")->template_(), "");
  EXPECT_EQ(announced("job-one")->uid(), 1001U);
  for (const char* const job : {"job-two", "job-all", "job-none", "default"}) {
    ASSERT_TRUE(announced(job)) << job;
    EXPECT_FALSE(announced(job)->has_uid()) << job;
  }
}

TEST_F(FlowReportsTest, AFlowWithAnotherWeightIsAnnouncedAgain) {
  (void)stage_.find("a");
  look();
  stage::Config config = config_;
  for (stage::VirtualPfsConfig& each : config.virtual_pfs) each.share.weight = 8;
  stage_.reconfigure(config, stage_.now());
  look();
  ASSERT_TRUE(announced("job-a"));
  EXPECT_EQ(announced("job-a")->weight(), 8U);
  look();
  EXPECT_EQ(flows_.flows_size(), 0);
}

TEST_F(FlowReportsTest, OnlyFlowsWhoseCountersChangedAreReported) {
  const stage::Place a = stage_.find("a");
  const stage::Place b = stage_.find("b");
  look();
  stage_.serve(b);
  look();
  ASSERT_EQ(report_.flows_size(), 1);
  EXPECT_EQ(report_.flows(0).flow(), std::to_underlying(b.id.app));
  (void)stage_.arrive(a);
  look();
  ASSERT_EQ(report_.flows_size(), 1);
  EXPECT_EQ(report_.flows(0).flow(), std::to_underlying(a.id.app));
  EXPECT_EQ(report_.flows(0).queued_requests(), 1U);
}

TEST_F(FlowReportsTest, ARetiredFlowEndsAndItsNumberIsAnnouncedAnewForAnother) {
  const stage::Place old = stage_.find("a");
  stage_.serve(old);
  look();
  const std::uint32_t number = std::to_underlying(old.id.app);
  stage_.retire_idle();
  look();
  ASSERT_EQ(reported(number).size(), 1U);
  EXPECT_TRUE(reported(number).front().ended());
  EXPECT_EQ(reports_.find(number), std::nullopt);
  look();
  EXPECT_TRUE(reported(number).empty()) << "the end is told once";

  const stage::Place next = stage_.find("b");
  ASSERT_EQ(std::to_underlying(next.id.app), number) << "the stage uses the number again";
  ASSERT_NE(next.id, old.id);
  look();
  ASSERT_TRUE(announced("job-b"));
  EXPECT_EQ(reports_.find(number), next.id);
}

TEST_F(FlowReportsTest, ANumberThatWasUsedAgainBetweenTwoReportsEndsFirst) {
  const stage::Place old = stage_.find("a");
  stage_.serve(old);
  look();
  const std::uint32_t number = std::to_underlying(old.id.app);
  stage_.retire_idle();
  const stage::Place next = stage_.find("b");
  ASSERT_EQ(std::to_underlying(next.id.app), number);
  look();
  ASSERT_EQ(reported(number).size(), 2U);
  EXPECT_TRUE(reported(number)[0].ended());
  EXPECT_FALSE(reported(number)[1].ended());
  EXPECT_EQ(reported(number)[1].done_requests(), 0U) << "counters of the old one";
  ASSERT_TRUE(announced("job-b"));
  EXPECT_EQ(announced("job-b")->generation(), next.id.generation);
}

TEST_F(FlowReportsTest, NumbersThatWereNotAnnouncedAreNotFound) {
  EXPECT_EQ(reports_.find(0), std::nullopt);
  look();
  EXPECT_TRUE(reports_.find(0)) << "default";
  EXPECT_EQ(reports_.find(4'000'000'000U), std::nullopt);
}

}  // namespace
}  // namespace vpfs::control
