// What a stage counts for each rule, and what its virtual PFSes know of their requests.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/stage.h"
#include "test/stage/stage_rig.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class StageRulesTest : public StageRig {
 protected:
  static Config config_of(const std::vector<RuleConfig>& rules) {
    Config config;
    config.scheduler.depth.requests = 1;
    config.cost.per_request = {};
    config.virtual_pfs = {{.name = "a", .share = {}},
                          {.name = "job-{jobid}", .share = {}},
                          {.name = "trial", .share = {.rate = {kSize}, .burst = {kSize}}}};
    config.idle = 60s;
    config.rules = rules;
    return config;
  }
  void SetUp() override {
    make(config_of({{.name = "jobs", .virtual_pfs = "job-{jobid}"},
                    {.name = "try", .mode = RuleMode::shadow, .virtual_pfs = "trial"},
                    {.name = "rest", .virtual_pfs = "a"}}));
  }
  static Classifier::Match job(const std::string& jobid, std::uint32_t nodes = 0) {
    return {.virtual_pfs = "job-" + jobid,
            .declared_name = "job-{jobid}",
            .rule = 0,
            .nodes = nodes,
            .jobid = jobid};
  }
  static Classifier::Match rest() { return {.virtual_pfs = "a", .declared_name = "a", .rule = 2}; }
  static Classifier::Match tried() {
    Classifier::Match match = rest();
    match.shadow_rule = 1;
    match.shadow_name = "trial";
    return match;
  }
  static Classifier::Match nobody() {
    return {.virtual_pfs = "default", .declared_name = "default"};
  }
  const RuleRows::Row& row(const std::string& rule) {
    return *stage_->rules().row(stage_->rules().find(rule));
  }
  const VirtualPfs& pfs(const Place& place) { return stage_->virtual_pfs()[place.id.app]; }
};

TEST_F(StageRulesTest, CountsTheRequestsAndTheVirtualPfsesOfEachRule) {
  (void)arrive(find(job("1")));
  (void)arrive(find(job("1")));
  now_ += 5s;
  (void)arrive(find(job("2")));
  stage_->count_refused(find(rest()), IoKind::read, {kSize}, now_);
  (void)arrive(find(nobody()));
  EXPECT_EQ(row("jobs").hits, 3U);
  EXPECT_EQ(row("jobs").made, 2U);
  EXPECT_EQ(row("jobs").last_hit, now_);
  EXPECT_EQ(row("rest").hits, 1U);
  EXPECT_EQ(row("rest").made, 0U);
  EXPECT_EQ(row("default").hits, 1U);
  EXPECT_EQ(row("try").hits, 0U);
}

TEST_F(StageRulesTest, ARequestThatIsParkedAndTakenBackIsOneHit) {
  Held& io = request(find(tried()));
  stage_->park(io, SlowClient::none, now_);
  stage_->arrive(io, now_);
  EXPECT_TRUE(stage_->take_back(io, now_));
  stage_->arrive(io, now_);
  EXPECT_EQ(row("rest").hits, 1U);
  EXPECT_EQ(row("try").hits, 1U);
  EXPECT_EQ(stage_->shadows().report("try", now_)->seen.requests, 1U);
}

// A worker that still has the old rules looks its requests up after the stage took on new ones.
TEST_F(StageRulesTest, AMatchWithOldRulesCountsByTheirNames) {
  const std::vector<RuleConfig> old = config_.rules;
  reconfigure(config_of({{.name = "new", .virtual_pfs = "a"},
                         {.name = "rest", .virtual_pfs = "a"},
                         {.name = "jobs", .virtual_pfs = "job-{jobid}"}}));
  (void)arrive(stage_->find(rest(), now_, old));
  (void)arrive(stage_->find(job("1"), now_, old));
  (void)arrive(stage_->find(tried(), now_, old));
  EXPECT_EQ(row("rest").hits, 2U);
  EXPECT_EQ(row("jobs").hits, 1U);
  EXPECT_EQ(row("new").hits, 0U);
  EXPECT_FALSE(stage_->shadows().report("try", now_)) << "it is gone";
}

TEST_F(StageRulesTest, ARequestOfARuleThatWentMeanwhileCountsForNoOther) {
  const Place before = find(rest());
  reconfigure(config_of({{.name = "x", .virtual_pfs = "a"},
                         {.name = "y", .virtual_pfs = "a"},
                         {.name = "z", .virtual_pfs = "a"}}));
  (void)arrive(before);
  for (const char* rule : {"x", "y", "z", "default"}) EXPECT_EQ(row(rule).hits, 0U) << rule;
}

TEST_F(StageRulesTest, AMatchWithoutRulesCountsForNone) {
  (void)arrive(stage_->find(rest(), now_));
  EXPECT_EQ(row("rest").hits, 0U);
  EXPECT_EQ(row("default").hits, 0U);
}

TEST_F(StageRulesTest, AVirtualPfsKnowsTheRuleAndTheClassOfItsLastRequest) {
  const Place place = find(job("7"));
  EXPECT_EQ(pfs(place).last_rule, RuleRef{}) << "no request yet";
  Held& io = request(place);
  io.traffic_class = 3;
  stage_->park(io, SlowClient::none, now_);
  EXPECT_EQ(*stage_->rules().row(pfs(place).last_rule)->name, "jobs");
  EXPECT_EQ(pfs(place).last_class, 3U);
  EXPECT_EQ(stage_->virtual_pfs().jobid(place.id.app), "7");
  stage_->abandon(io, now_);
}

TEST_F(StageRulesTest, AShadowRuleHoldsNothingAndReportsWhatItWouldHave) {
  const Place place = find(tried());
  for (int i = 0; i < 3; ++i) {
    Held& io = arrive(place);
    ASSERT_THAT(let_go(), ElementsAre(&io));
    end(io);
  }
  now_ += 10s;
  const ShadowLimits::Report report = stage_->shadows().report("try", now_).value();
  EXPECT_EQ(report.seen.requests, 3U);
  EXPECT_EQ(report.would_hold.requests, 2U);
  EXPECT_EQ(report.would_hold.bytes, 2 * kSize);
  EXPECT_EQ(report.held, 2s);
  EXPECT_EQ(row("rest").hits, 3U) << "the rule that really takes them";
  for (const AppId app : stage_->virtual_pfs().everybody()) {
    EXPECT_NE(stage_->virtual_pfs()[app].info->name, "trial");
  }
}

TEST_F(StageRulesTest, IdleShadowRowsAreRetiredWithIdleVirtualPfses) {
  const Place old = find(tried());
  (void)arrive(old);
  now_ += 61s;
  retire_idle();
  EXPECT_FALSE(stage_->shadows().report("try", "trial", now_));
  EXPECT_EQ(stage_->shadows().report("try", now_)->seen.requests, 1U);
  EXPECT_NE(find(tried()).shadow, old.shadow);
}

TEST_F(StageRulesTest, NodesOfAJobAreItsPriorityUnderAPolicyThatKnowsThem) {
  Config config = config_of(config_.rules);
  config.policy = "adaptbf";
  make(config);
  const Place small = find(job("1", 1));
  const Place large = find(job("2", 1));
  (void)find(job("2", 9));
  EXPECT_EQ(pfs(large).info->share().own_value("nodes"), 9U);
  // In each period both ask for more than there is.
  std::vector<Held*> released;
  for (int round = 0; round < 4000; ++round, now_ += 1ms) {
    for (const Place& place : {small, large}) {
      while (pfs(place).requests < 20) (void)arrive(place);
    }
    for (Held* io : std::exchange(released, {})) end(*io);
    released = let_go();
  }
  const auto done = [&](const Place& place) {
    return stage_->virtual_pfs().counters(place.id.app).done.all().requests;
  };
  EXPECT_GT(done(large), 3 * done(small)) << done(small) << " and " << done(large);
}

TEST_F(StageRulesTest, StatisticsCountFromArrivalToTheEndAndSurviveTheVirtualPfs) {
  const Place place = find(job("1"));
  EXPECT_EQ(pfs(place).histograms, nullptr) << "nothing was sent";
  Held& read = arrive(place);
  Held& write = arrive(place, IoKind::write);
  ASSERT_THAT(let_go(), ElementsAre(&read));
  const TimePoint since = now_;
  now_ += 2ms;
  stage_->end(read, {.moved = {400}}, now_);
  ASSERT_THAT(let_go(), ElementsAre(&write));
  now_ += 3ms;
  EXPECT_TRUE(stage_->give_up_slot(write, now_));
  now_ += 5ms;
  stage_->end(write, {.moved = {kSize}, .failed = true}, now_);
  const IoStatistics& seen = pfs(place).histograms->statistics;
  EXPECT_EQ(seen.read_bytes.sum, 400U);
  EXPECT_EQ(seen.read_time.sum, 2000U);
  EXPECT_EQ(seen.write_bytes.sum, kSize);
  EXPECT_EQ(seen.write_time.sum, 10'000U) << "held for 2 ms, and 8 ms at the server";
  EXPECT_EQ(seen.since, since);
  EXPECT_EQ(seen.last, now_);
  const TimePoint last = now_;
  now_ += 61s;
  retire_idle();
  ASSERT_FALSE(stage_->virtual_pfs().is_there(place.id));
  const IoStatistics& retired = stage_->virtual_pfs().retired().histograms.statistics;
  EXPECT_EQ(retired.write_bytes.samples, 1U);
  EXPECT_EQ(retired.read_time.sum, 2000U);
  EXPECT_EQ(retired.since, since);
  EXPECT_EQ(retired.last, last);
}

}  // namespace
}  // namespace vpfs::stage
