#include "control/site/site_status.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "test/control/allocation/cycle_fixture.h"
#include "test/control/coordinator/live_book.h"
#include "test/control/coordinator/stages_of_test.h"
#include "test/support/manual_clock.h"

namespace vpfs::coordinator {
namespace {

using Json = nlohmann::json;

// Two stages with a job on both and one on the second alone; each is granted 100 and 7.
class SiteStatusTest : public ::testing::Test {
 protected:
  SiteStatusTest() : state_(allocation::small_settings(), make_policy(), 5) {
    stages_.use(requests_);
    requests_.missing = {{.name = "ds3", .address = "/run/ds3", .problem = "there is none"}};
    for (const char* name : {"ds2", "ds1"}) {
      ids_.push_back(*state_.join(name, 1, now_));
      StageHello hello;
      hello.name = name;
      hello.program = "vpfs-proxy 9";
      hello.takes_site = true;
      requests_.hellos[ids_.back().index] = hello;
      stages_.joined(ids_.back());
    }
    cycle();
    state_.on_flow(ids_[0], {.flow = 0, .generation = 1, .job = "gold", .weight = 4});
    state_.on_flow(ids_[0], {.flow = 1, .generation = 1, .job = "alone", .weight = 1});
    state_.on_flow(ids_[1], {.flow = 0, .generation = 1, .job = "gold", .weight = 4});
    cycle();
    cycle();
  }
  static std::unique_ptr<allocation::AllocationPolicy> make_policy() {
    auto policy = std::make_unique<allocation::ScriptedPolicy>();
    policy->grant = [](std::string_view, const allocation::Pair&) {
      return allocation::Grant{.bytes = 100, .operations = 7};
    };
    return policy;
  }
  void cycle() {
    now_ += std::chrono::milliseconds(50);
    (void)state_.begin_cycle(now_);
    for (const allocation::StageId id : ids_) {
      (void)state_.on_report(id, {.term = 5, .sequence = state_.sequence(), .applied = true}, {},
                             now_);
    }
  }
  SiteNumbers numbers() {
    SiteNumbers numbers;
    numbers.name = "main";
    numbers.policy = "psfa";
    numbers.term = state_.term();
    add_stages(numbers, state_, stages_);
    add_jobs(numbers, state_);
    return numbers;
  }
  Json status() { return Json::parse(status_json(numbers(), config_, book_.live())); }

  TimePoint now_ = TimePoint(std::chrono::seconds(100));
  asio::io_context context_;
  test::ManualClock clock_{now_};
  StagesOfTest requests_;
  SiteStages stages_{context_, clock_};
  allocation::CycleState state_;
  std::vector<allocation::StageId> ids_;
  LiveBook book_;
  Config config_;
};

TEST_F(SiteStatusTest, StagesAreInTheOrderOfNamesWithTheSumsOfTheirCaps) {
  const Json stages = status()["stages"];
  ASSERT_EQ(stages.size(), 3U);
  EXPECT_EQ(stages[0]["name"], "ds1");
  EXPECT_EQ(stages[0]["connected"], true);
  EXPECT_EQ(stages[0]["program"], "vpfs-proxy 9");
  EXPECT_EQ(stages[0]["jobs"], 1);
  EXPECT_EQ(stages[0]["caps"]["bytes"], 100);
  EXPECT_EQ(stages[0]["rules"]["state"], "waiting");
  EXPECT_EQ(stages[1]["jobs"], 2);
  EXPECT_EQ(stages[1]["caps"]["operations"], 14);
  EXPECT_EQ(stages[2]["name"], "ds3");
  EXPECT_EQ(stages[2]["connected"], false);
  EXPECT_EQ(stages[2]["problem"], "there is none");
  EXPECT_EQ(stages[2]["rules"]["state"], "not connected");
}

TEST_F(SiteStatusTest, JobsHaveTheirSumsOverAllStages) {
  state_.set_job("gold", 9, {.bytes = 1234});
  cycle();
  const Json jobs = status()["jobs"];
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0]["name"], "alone");
  EXPECT_EQ(jobs[1]["name"], "gold");
  EXPECT_EQ(jobs[1]["weight"], 9);
  EXPECT_EQ(jobs[1]["most"]["bytes"], 1234);
  EXPECT_EQ(jobs[1]["stages"], 2);
  EXPECT_EQ(jobs[1]["granted"]["bytes"], 200);
}

// Each does 3 of the cost on ds2, alone 1 and gold 2; gold has ds1 for itself.
TEST_F(SiteStatusTest, TotalsThatAreNotReachedHaveTheirReasonAndWhatWouldHelp) {
  allocation::TotalsWatch totals;
  const auto look = [&](std::uint64_t seconds) {
    std::vector<allocation::Pair> pairs(state_.pairs().begin(), state_.pairs().end());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      pairs[i].weight = 1;
      pairs[i].done = seconds * (i == 0 ? 1000 : 2000);
      pairs[i].times.present = std::chrono::seconds(seconds);
    }
    const auto name_of = [&](std::size_t row) { return state_.stage_of(row)->name; };
    totals.look(pairs, state_.job_names(), name_of, now_ + std::chrono::seconds(seconds));
  };
  EXPECT_FALSE(status()["jobs"][0].contains("total"));
  look(0);
  look(10);
  SiteNumbers with = numbers();
  add_totals(with, totals);
  const Json jobs = Json::parse(status_json(with, config_, book_.live()))["jobs"];
  EXPECT_EQ(jobs[0]["total"], Json({{"cost", 1000},
                                    {"entitled", 2500},
                                    {"reached", false},
                                    {"why", "keeps no queue at ds2"},
                                    {"would_help",
                                     "sfq.anticipation unless it is on, more requests in "
                                     "flight, or a smaller depth.requests"},
                                    {"at", {"ds2"}}}));
  EXPECT_EQ(jobs[1]["total"], Json({{"cost", 4000}, {"entitled", 2500}, {"reached", true}}));
}

TEST_F(SiteStatusTest, AStageThatHasLeftIsShownWhileItsLimitsMayBeInForce) {
  stages_.left(ids_[0]);
  state_.leave(ids_[0], now_);
  Json stages = status()["stages"];
  ASSERT_EQ(stages.size(), 3U);
  EXPECT_EQ(stages[1]["name"], "ds2");
  EXPECT_EQ(stages[1]["connected"], false);
  ids_.erase(ids_.begin());
  now_ += std::chrono::seconds(5);
  cycle();
  cycle();
  stages = status()["stages"];
  ASSERT_EQ(stages.size(), 2U) << "ds1, and ds3 that is dialled in vain";
}

TEST_F(SiteStatusTest, AnAggregatorSaysWhetherItsParentIsConnected) {
  EXPECT_FALSE(status().contains("parent"));
  SiteNumbers of_aggregator = numbers();
  of_aggregator.parent = {.is_connected = true,
                          .is_led = true,
                          .address = "/run/root.sock",
                          .problem = "",
                          .term = 7,
                          .sequence = 90};
  const Json parent = Json::parse(status_json(of_aggregator, config_, book_.live()))["parent"];
  EXPECT_EQ(parent, Json({{"address", "/run/root.sock"},
                          {"addresses", Json::array()},
                          {"connected", true},
                          {"leads", true},
                          {"problem", ""},
                          {"term", 7},
                          {"sequence", 90}}));
}

TEST_F(SiteStatusTest, StatsHaveJobsAsVirtualPfsesAndTheRules) {
  book_.start("gold", "jobid=a", {"weight=4", "total_rate=1GiB/s"});
  const control::StatsReply reply = stats_of(numbers(), book_.live(), true);
  EXPECT_EQ(reply.name(), "main");
  EXPECT_EQ(reply.term(), 5U);
  EXPECT_EQ(reply.connections(), 2U);
  ASSERT_EQ(reply.virtual_pfs_size(), 2);
  EXPECT_EQ(reply.virtual_pfs(1).name(), "gold");
  EXPECT_EQ(reply.virtual_pfs(1).allocated_rate(), 200U);
  EXPECT_EQ(reply.rules(0).name(), "gold");
  EXPECT_EQ(stats_of(numbers(), book_.live(), false).rules_size(), 0);
  EXPECT_EQ(status()["rules"]["live"], 1);
}

}  // namespace
}  // namespace vpfs::coordinator
