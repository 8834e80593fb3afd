#include "control/host/status.h"

#include <deque>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/control/gate/quiet_gate.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr std::uint64_t kSize = 1000;

// A stage and the part of a status that its program would write of it.
class StatusTest : public ::testing::Test {
 protected:
  static stage::Config make_config() {
    stage::Config config;
    config.scheduler.depth.requests = 1;
    config.scheduler.classes = {.mode = TrafficClasses::Mode::strict,
                                .classes = {{.name = "fast"}, {.name = "slow"}}};
    config.virtual_pfs = {{.name = "job-{jobid}", .share = {}},
                          {.name = "trial", .share = {.rate = {kSize}, .burst = {kSize}}},
                          {.name = "roots", .share = {}}};
    config.rules = {{.name = "try", .mode = stage::RuleMode::shadow, .virtual_pfs = "trial"},
                    {.name = "root", .virtual_pfs = "roots", .exempt = true},
                    {.name = "jobs", .virtual_pfs = "job-{jobid}"}};
    return config;
  }
  stage::Held& arrive(const stage::Classifier::Match& match) {
    stage::Held& io = ios_.emplace_back();
    io.set_place(gate_.find(match, now_, config_.rules));
    io.size = io.asked = {kSize};
    io.cost = kSize;
    io.arrival = now_;
    io.traffic_class = 1;
    gate_.act(now_, [&](stage::Stage& stage, TimePoint at) {
      stage.arrive(io, at);
      release(stage, at);
    });
    return io;
  }
  void end(stage::Held& io) {
    gate_.act(now_, [&](stage::Stage& stage, TimePoint at) {
      stage.end(io, {.moved = {kSize}}, at);
      release(stage, at);
    });
  }
  static void release(stage::Stage& stage, TimePoint at) {
    std::vector<stage::Held*> released;
    (void)stage.release(at, released);
    for (stage::Held* each : released) stage::Stage::took_over(*each);
  }
  json status() {
    const HostStatus host = {.snapshot = reader_.read(gate_, now_), .coordinator = coordinator_};
    nlohmann::ordered_json status = {{"bypass", host.snapshot.bypass}};
    add_reloads(status, host.reloads);
    add_stage(status, config_, host.snapshot);
    add_coordinator(status, host);
    return json::parse(to_text(status));
  }
  static json row_of(const json& rows, const std::string& name) {
    for (const json& row : rows) {
      if (row["name"] == name) return row;
    }
    return {};
  }

  TimePoint now_ = TimePoint(100s);
  const stage::Config config_ = make_config();
  test::QuietGate gate_{config_, now_};
  SnapshotReader reader_;
  std::optional<DialledCoordinator> coordinator_;
  std::deque<stage::Held> ios_;
};

TEST_F(StatusTest, TheCoordinatorIsShownOnceItIsConfiguredOrHasSentACycle) {
  EXPECT_FALSE(status().contains("coordinator"));
  coordinator_ = {.address = "coord:7311",
                  .addresses = {"coord:7311", "/run/other"},
                  .since = WallTime(std::chrono::seconds(1'800'000'000)),
                  .problem = "refused: nothing listens there",
                  .problem_at = WallTime(std::chrono::seconds(1'800'000'060)),
                  .dials = 3};
  EXPECT_EQ(status()["coordinator"], (json{{"address", "coord:7311"},
                                           {"addresses", {"coord:7311", "/run/other"}},
                                           {"connected", false},
                                           {"since", "2027-01-15T08:00:00Z"},
                                           {"dials", 3},
                                           {"problem", "refused: nothing listens there"},
                                           {"problem_at", "2027-01-15T08:01:00Z"}}));
  (void)gate_.allocate({.epoch = {.term = 4, .sequence = 1}, .lease = 1s}, {}, now_);
  EXPECT_EQ(status()["coordinator"]["dials"], 3);
  EXPECT_EQ(status()["coordinator"]["term"], 4);
  coordinator_.reset();
  EXPECT_FALSE(status()["coordinator"].contains("address"));
  EXPECT_EQ(status()["coordinator"]["term"], 4);
}

TEST_F(StatusTest, RulesAreInTheirOrderWithWhatTheyCounted) {
  const stage::Classifier::Match job = {.virtual_pfs = "job-7",
                                        .declared_name = "job-{jobid}",
                                        .rule = 2,
                                        .shadow_rule = 0,
                                        .shadow_name = "trial",
                                        .jobid = "7"};
  for (int i = 0; i < 3; ++i) end(arrive(job));
  now_ += 5s;
  const json rules = status()["rules"];
  ASSERT_EQ(rules.size(), 4U);
  EXPECT_EQ(
      rules[0],
      (json{
          {"name", "try"},
          {"hits", 3},
          {"virtual_pfs_made", 0},
          {"idle_us", 5'000'000},
          {"would_hold",
           {{"requests", 2}, {"bytes", 2 * kSize}, {"us", 2'000'000}, {"unmeasured_requests", 0}}},
          {"virtual_pfs", "trial"}}));
  EXPECT_EQ(rules[1], (json{{"name", "root"},
                            {"hits", 0},
                            {"virtual_pfs_made", 0},
                            {"virtual_pfs", "roots"},
                            {"exempt", true}}));
  EXPECT_EQ(rules[2]["hits"], 3);
  EXPECT_EQ(rules[2]["virtual_pfs_made"], 1);
  EXPECT_EQ(rules[3], (json{{"name", "default"}, {"hits", 0}, {"virtual_pfs_made", 0}}));
  const json row = row_of(status()["virtual_pfs"], "job-7");
  EXPECT_EQ(row["rule"], "jobs");
  EXPECT_EQ(row["jobid"], "7");
  EXPECT_EQ(row["class"], "slow");
  EXPECT_FALSE(row.contains("unscheduled_requests"));
}

TEST_F(StatusTest, WhatGoesWithoutASlotIsToldApartAndAmongAll) {
  EXPECT_EQ(status()["bypass"], false);
  const stage::Classifier::Match root = {
      .virtual_pfs = "roots", .declared_name = "roots", .rule = 1, .exempt = true};
  stage::Held& first = arrive(root);
  gate_.bypass(true, now_);
  stage::Held& second =
      arrive({.virtual_pfs = "job-7", .declared_name = "job-{jobid}", .rule = 2, .jobid = "7"});
  const json seen = status();
  EXPECT_EQ(seen["bypass"], true);
  EXPECT_EQ(seen["outstanding"], 2);
  EXPECT_EQ(row_of(seen["virtual_pfs"], "roots")["unscheduled_requests"], 1);
  EXPECT_EQ(row_of(seen["virtual_pfs"], "job-7")["unscheduled_bytes"], kSize);
  EXPECT_EQ(row_of(seen["virtual_pfs"], "job-7")["outstanding_requests"], 1);
  end(first);
  end(second);
  EXPECT_EQ(status()["outstanding"], 0);
}

TEST_F(StatusTest, ACoordinatorsLimitsAreBesideTheShareWhileTheyHold) {
  EXPECT_FALSE(status().contains("coordinator"));
  stage::VirtualPfsId id;
  gate_.inspect(now_, [&id](stage::Stage& stage, TimePoint) {
    for (std::uint32_t i = 0; i < stage.rows(); ++i) {
      if (stage.virtual_pfs()[AppId{i}].info->name == "roots") {
        id = stage.virtual_pfs().id_of(AppId{i});
      }
    }
  });
  const stage::Allocation allocation = {
      .id = id, .limits = {.bytes = {{500}}, .operations = 7, .metadata_operations = 3}};
  const stage::Cycle cycle = {.epoch = {.term = 3, .sequence = 9}, .lease = 2s};
  (void)gate_.allocate(cycle, std::span(&allocation, 1), now_);
  const json during = status();
  EXPECT_EQ(during["coordinator"]["term"], 3);
  EXPECT_EQ(during["coordinator"]["sequence"], 9);
  EXPECT_EQ(during["coordinator"]["lease_us_left"], 2'000'000);
  EXPECT_EQ(row_of(during["virtual_pfs"], "roots")["allocated_rate"], 500);
  EXPECT_EQ(row_of(during["virtual_pfs"], "roots")["allocated_operations"], 7);
  EXPECT_EQ(row_of(during["virtual_pfs"], "roots")["allocated_metadata_operations"], 3);
  EXPECT_FALSE(row_of(during["virtual_pfs"], "default").contains("allocated_rate"));
  now_ += 2s;
  gate_.act(now_, [](stage::Stage& stage, TimePoint at) { release(stage, at); });
  const json later = status();
  EXPECT_EQ(later["coordinator"]["leases_ended"], 1);
  EXPECT_FALSE(later["coordinator"].contains("lease_us_left"));
  EXPECT_FALSE(row_of(later["virtual_pfs"], "roots").contains("allocated_rate"));
}

}  // namespace
}  // namespace vpfs::control
