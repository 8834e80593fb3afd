#include "tools/plan/planned_rules.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fuse/posix/config.h"
#include "proxy/config/config.h"
#include "stage/book/rule_book.h"
#include "stage/config/rule_text.h"

namespace vpfs::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr WallTime kNow = WallTime(std::chrono::seconds(1'795'000'000));

constexpr const char* kProxy =
    "proxy: {protocol: orangefs, listen: '127.0.0.1:3334', upstream: '127.0.0.1:3335'}\n"
    "scheduler: {policy: sfq, depth: {requests: 4}}\n"
    "virtual_pfs: {pool: {weight: 3}}\n"
    "rules: [{name: theirs, match: {uid: 1001}, virtual_pfs: pool}]\n";

class OwnNames : public stage::Names {
 public:
  std::optional<std::uint32_t> user(const std::string& name) const override {
    if (name == "alice") return 1001;
    return std::nullopt;
  }
  std::optional<std::uint32_t> group(const std::string& /*name*/) const override {
    return std::nullopt;
  }
  std::vector<std::string> addresses(const std::string& /*host*/) const override { return {}; }
};

class PlannedRulesTest : public ::testing::Test {
 protected:
  PlannedRulesTest() {
    told_.set_name("px");
    told_.set_program("vpfs-proxy");
    told_.set_file_name("/etc/vpfs/proxy.yaml");
    told_.set_file(kProxy);
    told_.set_book(stage::RuleBook(stage::parse_rule).snapshot());
  }
  Result<PlannedRules> planned(const std::string& set) const {
    return planned_rules(told_, {.file_name = "rules.yaml", .text = set}, kNow, names_);
  }
  std::string problem(const std::string& set = "rules: []") const {
    const auto made = planned(set);
    return made ? "" : made.error().message;
  }
  static std::vector<std::string> names_of(const stage::Config& config) {
    std::vector<std::string> names;
    for (const stage::RuleConfig& each : config.rules) names.push_back(each.name);
    return names;
  }

  control::InForceReply told_;
  OwnNames names_;
};

TEST_F(PlannedRulesTest, ThoseOfTheSetComeBeforeTheFiles) {
  const auto made = planned("rules: [{name: mine, match: 'uid=alice', weight: 9}]");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(names_of(made->now), ElementsAre("theirs"));
  EXPECT_THAT(names_of(made->then), ElementsAre("mine", "theirs"));
  EXPECT_EQ(made->now.scheduler, made->then.scheduler);
  EXPECT_EQ(made->then.virtual_pfs.back().share.weight, 9u);
}

TEST_F(PlannedRulesTest, TheSetReplacesLiveRulesAndLeavesJobsAlone) {
  ConfigErrors errors("file");
  const proxy::Config file = proxy::parse_config(kProxy, errors, nullptr, &names_);
  ASSERT_TRUE(errors.empty()) << errors.to_string();
  stage::RuleBook book(stage::parse_rule);
  const auto carry_out = [&](auto what) {
    const auto change = book.prepare({.at = kNow, .who = "ann", .what = what}, file);
    ASSERT_TRUE(change) << change.error().text;
    book.commit(change->operation);
  };
  carry_out(
      stage::StartRule{.rule = {.name = "old", .condition = "jobid=a", .words = {"weight=2"}}});
  carry_out(
      stage::StartJob{.job = {.jobid = "j1", .clients = {"10.0.0.1"}, .uids = {1001}, .nodes = 2},
                      .words = {"weight=4"}});
  told_.set_book(book.snapshot());
  const auto made = planned("rules: [{name: new, match: 'jobid=b', rate: 1MiB/s}]");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(names_of(made->now), ElementsAre("old", "job:j1", "theirs"));
  EXPECT_THAT(names_of(made->then), ElementsAre("new", "job:j1", "theirs"));
  EXPECT_EQ(made->then.jobs.size(), 1u);
}

TEST_F(PlannedRulesTest, AMountsFileIsReadAsAMountReadsIt) {
  told_.set_program("vpfs-mount");
  told_.set_file_name("");
  told_.set_file(std::string(fuse::default_config()));
  told_.add_node_addresses(std::string(16, '\7'));
  const auto made = planned("rules: [{name: mine, match: 'uid=7', weight: 2}]");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->then.rules.size(), made->now.rules.size() + 1);
  stage::Address::Bytes sevens;
  sevens.fill(7);
  EXPECT_THAT(made->then.node_addresses, ElementsAre(stage::Address(sevens)));
}

TEST_F(PlannedRulesTest, MistakesNameTheirPlace) {
  EXPECT_THAT(problem("rules: [{name: mine, match: 'uid=nobody_here', weight: 2}]"),
              HasSubstr("rules.yaml:1"));
  EXPECT_THAT(problem("rules: [{name: theirs, match: 'uid=5', weight: 2}]"),
              HasSubstr("rules.yaml: "));
  EXPECT_EQ(problem("rules: [{name: mine, match: 'uid=alice', weight: 2}]"), "");
}

TEST_F(PlannedRulesTest, WhatAStageTellsWronglyIsSaid) {
  told_.set_program("vpfs-novelty");
  EXPECT_EQ(problem(), "px: is a vpfs-novelty, which this program does not know");
  told_.set_program("vpfs-proxy");
  told_.set_book("{\"v\":99}");
  EXPECT_THAT(problem(), HasSubstr("px: its live rules cannot be read here: "));
  told_.set_book("");
  EXPECT_THAT(problem(), HasSubstr("px: its live rules cannot be read here: "));
  told_.set_book(stage::RuleBook(stage::parse_rule).snapshot());
  told_.set_file("proxy: {protocol: novel}");
  EXPECT_THAT(problem(), HasSubstr("/etc/vpfs/proxy.yaml of px:1"));
  told_.set_file(kProxy);
  told_.add_node_addresses("short");
  EXPECT_EQ(problem(), "px: tells an address of 5 bytes");
}

}  // namespace
}  // namespace vpfs::plan
