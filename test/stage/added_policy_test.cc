// A stage with a policy that vpfs does not know: only tests name RoundRobin.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/config/scheduler_config.h"
#include "stage/config/share_config.h"
#include "stage/stage.h"
#include "test/support/round_robin.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class AddedPolicyTest : public ::testing::Test {
 protected:
  // Returns all errors.
  std::string read(const std::string& text) {
    ConfigErrors errors("f.yaml");
    config_ = {};
    config_.policies = policies_;
    {
      ConfigReader reader(text, errors);
      read_scheduler(reader.child("scheduler"), config_, nullptr);
      read_shares(reader, config_);
    }
    return errors.to_string();
  }
  void make() { stage_ = std::make_unique<Stage>(config_, now_); }
  AppId app(const std::string& name) {
    return stage_->find({.virtual_pfs = name, .declared_name = name}, now_).id.app;
  }
  void arrive(const std::string& name) {
    const VirtualPfsId id = stage_->find({.virtual_pfs = name, .declared_name = name}, now_).id;
    Held& io = requests_.emplace_back();
    io.app = id.app;
    io.generation = id.generation;
    io.size = io.asked = {1000};
    io.cost = 1000;
    io.arrival = now_;
    stage_->arrive(io, now_);
  }
  // Releases `count` requests and ends each at once; returns the names of their virtual PFSes.
  std::vector<std::string> served(std::size_t count) {
    std::vector<std::string> names;
    while (names.size() < count) {
      std::vector<Held*> released;
      (void)stage_->release(now_, released);
      if (released.empty()) break;
      for (Held* io : released) {
        Stage::took_over(*io);
        names.push_back(stage_->virtual_pfs()[io->app].info->name);
        stage_->end(*io, {.moved = io->size}, now_);
      }
    }
    return names;
  }
  Scheduler& scheduler() { return *stage_->lanes()[0].scheduler; }

  const std::vector<const PolicyKind*> policies_ = policies_with_round_robin();
  Config config_;
  TimePoint now_ = TimePoint{} + 10s;
  std::unique_ptr<Stage> stage_;
  std::deque<Held> requests_;
};

constexpr const char* kGood =
    "scheduler: {policy: round_robin, depth: 1, round_robin: {visit: 1, rest: 5 ms}}\n"
    "virtual_pfs: {a: {visit: 3}, b: {weight: 7}}\n";

TEST_F(AddedPolicyTest, TheConfigurationHasItsSettingsAndItsWordOfAShare) {
  EXPECT_EQ(read(kGood), "");
  EXPECT_EQ(config_.policy, "round_robin");
  const auto settings = config_.scheduler.own.of<RoundRobinSettings>();
  EXPECT_EQ(settings.visit, 1U);
  EXPECT_EQ(settings.rest, Duration(5ms));
  EXPECT_EQ(config_.virtual_pfs[0].share.own_value("visit"), 3U);
  EXPECT_EQ(config_.virtual_pfs[1].share.own_value("visit"), std::nullopt);
  EXPECT_EQ(config_.cost.per_request, Bytes{kKiB}) << "as the policy says";
}

TEST_F(AddedPolicyTest, ItsMistakesHaveTheirLineAndKey) {
  EXPECT_EQ(read("scheduler:\n"
                 "  policy: round_robin\n"
                 "  depth: 4\n"
                 "  round_robin:\n"
                 "    visit: 5\n"
                 "    rest: 2 s\n"
                 "    vist: 1\n"
                 "  quantum: 2\n"
                 "virtual_pfs:\n"
                 "  a: {visit: 101}\n"
                 "  b: {nodes: 3}\n"
                 "  c: {rate: 1 MiB/s}\n"),
            "f.yaml:5: scheduler.round_robin.visit: is more than the depth\n"
            "f.yaml:6: scheduler.round_robin.rest: \"2 s\" is out of range: 0 s to 1 s\n"
            "f.yaml:7: scheduler.round_robin.vist: unknown key; did you mean \"visit\"?\n"
            "f.yaml:8: scheduler.quantum: unknown key; did you mean \"round_robin.visit\"?\n"
            "f.yaml:10: virtual_pfs.a.visit: \"101\" is out of range: 1 to 100\n"
            "f.yaml:11: virtual_pfs.b.nodes: would be ignored by the policy round_robin\n"
            "f.yaml:12: virtual_pfs.c.rate: would be ignored by the policy round_robin\n");
}

TEST_F(AddedPolicyTest, ItsWordMeansNothingToOtherPolicies) {
  EXPECT_EQ(read("scheduler: {policy: sfq}\nvirtual_pfs:\n  a: {visit: 3}\n"),
            "f.yaml:3: virtual_pfs.a.visit: would be ignored by the policy sfq\n");
}

TEST_F(AddedPolicyTest, AStageSharesByItAndSaysWhatItSays) {
  ASSERT_EQ(read(kGood), "");
  make();
  for (int i = 0; i < 6; ++i) arrive("a");
  for (int i = 0; i < 2; ++i) arrive("b");
  now_ += 20ms;
  EXPECT_THAT(served(8), ElementsAre("a", "a", "a", "b", "a", "a", "a", "b"));
  const StatusFields a = scheduler().report(app("a"), now_);
  EXPECT_EQ(a.integer("turns"), 2);
  EXPECT_EQ(a.get<Duration>("longest_wait"), Duration(20ms));
  EXPECT_EQ(a.get<bool>("waits_for_turn"), false);
  EXPECT_EQ(scheduler().server(now_).get<std::string_view>("order"), "in turn");
  EXPECT_EQ(scheduler().server(now_).get<Duration>("rest"), Duration(5ms));
}

TEST_F(AddedPolicyTest, AReloadWithAnotherShareOrOtherSettingsTakesEffect) {
  ASSERT_EQ(read(kGood), "");
  make();
  for (int i = 0; i < 4; ++i) arrive("a");
  for (int i = 0; i < 4; ++i) arrive("b");
  ASSERT_EQ(read("scheduler: {policy: round_robin, depth: 2, round_robin: {visit: 2}}\n"
                 "virtual_pfs: {a: {visit: 1}, b: {}}\n"),
            "");
  stage_->reconfigure(config_, now_);
  EXPECT_THAT(served(8), ElementsAre("a", "b", "b", "a", "b", "b", "a", "a"));
  ASSERT_EQ(read("scheduler: {policy: sfq}\nvirtual_pfs: {a: {}, b: {}}\n"), "");
  stage_->reconfigure(config_, now_);
  EXPECT_EQ(scheduler().report(app("a"), now_).integer("turns"), std::nullopt);
}

TEST_F(AddedPolicyTest, WhatTrafficClassesSayOfAFlowBecomesOne) {
  ASSERT_EQ(read("scheduler:\n"
                 "  {policy: round_robin, depth: 1,\n"
                 "   classes: {mode: apportion, names: [{name: x}, {name: y}]}}\n"
                 "virtual_pfs: {a: {}}\n"),
            "");
  make();
  arrive("a");
  now_ += 1ms;
  Held& io = requests_.emplace_back();
  const VirtualPfsId id = stage_->find({.virtual_pfs = "a", .declared_name = "a"}, now_).id;
  io.app = id.app;
  io.generation = id.generation;
  io.traffic_class = 1;
  io.size = io.asked = {1000};
  io.cost = 1000;
  io.arrival = now_;
  stage_->arrive(io, now_);
  EXPECT_EQ(scheduler().report(id.app, now_).get<bool>("waits_for_turn"), true);
  now_ += 1ms;
  EXPECT_EQ(served(2).size(), 2U);
  const StatusFields fields = scheduler().report(id.app, now_);
  EXPECT_EQ(fields.integer("turns"), 2) << "one in each class";
  EXPECT_EQ(fields.get<Duration>("longest_wait"), Duration(2ms));
}

}  // namespace
}  // namespace vpfs::stage
