#include "tools/vpfsctl/site/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Names kNames = {.user = [](const std::string& name) -> std::optional<std::uint32_t> {
                        if (name == "alice") return 1001;
                        return std::nullopt;
                      },
                      .group = [](const std::string& name) -> std::optional<std::uint32_t> {
                        if (name == "physics") return 500;
                        return std::nullopt;
                      }};

control::Envelope request_of(const Command& command) {
  auto request = to_request(command, kNames, false);
  EXPECT_TRUE(request) << request.error().message;
  return request.value_or(control::Envelope());
}

std::string problem_of(const Command& command) {
  const auto request = to_request(command, kNames, false);
  return request ? "no problem" : request.error().message;
}

TEST(Command, RuleStartCarriesNameConditionAndWords) {
  const auto request = request_of({.verb = Verb::rule_start,
                                   .name = "dd",
                                   .condition = "jobid={dd.*}",
                                   .words = {"rate=500MiB/s", "for=2h"}});
  EXPECT_EQ(request.rule().action(), control::Rule::START);
  EXPECT_EQ(request.rule().name(), "dd");
  EXPECT_EQ(request.rule().condition(), "jobid={dd.*}");
  EXPECT_THAT(request.rule().words(), ElementsAre("rate=500MiB/s", "for=2h"));
}

TEST(Command, AForgottenNameOfARuleIsNoticed) {
  EXPECT_THAT(problem_of({.verb = Verb::rule_start, .name = "jobid={a}", .condition = "weight=4"}),
              HasSubstr("name is missing before \"jobid={a}\""));
  EXPECT_THAT(problem_of({.verb = Verb::rule_change, .name = "weight=8"}),
              HasSubstr("name is missing"));
}

TEST(Command, RuleChangeNeedsAWord) {
  EXPECT_THAT(problem_of({.verb = Verb::rule_change, .name = "dd"}), HasSubstr("weight=8"));
  EXPECT_THAT(
      request_of({.verb = Verb::rule_change, .name = "dd", .words = {"weight=8"}}).rule().words(),
      ElementsAre("weight=8"));
}

TEST(Command, ApplySendsTheTextOfTheFile) {
  const auto rule = request_of({.verb = Verb::rule_apply,
                                .file_name = "rules.yaml",
                                .file_text = "rules: []\n",
                                .dry_run = true,
                                .confirm = "90s"})
                        .rule();
  EXPECT_EQ(rule.action(), control::Rule::APPLY);
  EXPECT_EQ(rule.file(), "rules: []\n");
  EXPECT_EQ(rule.file_name(), "rules.yaml");
  EXPECT_TRUE(rule.dry_run());
  EXPECT_EQ(rule.confirm_seconds(), 90U);
  EXPECT_THAT(problem_of({.verb = Verb::rule_apply, .confirm = "90"}), HasSubstr("needs a unit"));
  EXPECT_THAT(problem_of({.verb = Verb::rule_apply, .confirm = "0s"}), HasSubstr("60s"));
}

TEST(Command, OtherRuleActionsCarryWhatTheyNeed) {
  EXPECT_EQ(request_of({.verb = Verb::rule_stop, .name = "dd"}).rule().name(), "dd");
  EXPECT_EQ(request_of({.verb = Verb::rule_stop, .name = "dd"}).rule().action(),
            control::Rule::STOP);
  EXPECT_EQ(request_of({.verb = Verb::rule_list}).rule().action(), control::Rule::LIST);
  EXPECT_EQ(request_of({.verb = Verb::rule_confirm}).rule().action(), control::Rule::CONFIRM);
  EXPECT_EQ(request_of({.verb = Verb::rule_history}).rule().action(), control::Rule::HISTORY);
  const auto rollback = request_of({.verb = Verb::rule_rollback, .version = 7}).rule();
  EXPECT_EQ(rollback.action(), control::Rule::ROLLBACK);
  EXPECT_EQ(rollback.version(), 7U);
}

TEST(Command, JobStartLooksUpNamesAndKeepsRangesOfClients) {
  const auto job = request_of({.verb = Verb::job_start,
                               .name = "4711_3",
                               .words = {"weight=4"},
                               .nodes = 5,
                               .users = {"alice", "1002"},
                               .groups = {"physics"},
                               .clients = "n[1-4],n7",
                               .account = "phys",
                               .time_limit = "8h"})
                       .job();
  EXPECT_EQ(job.action(), control::Job::START);
  EXPECT_EQ(job.jobid(), "4711_3");
  EXPECT_EQ(job.nodes(), 5U);
  EXPECT_THAT(job.uids(), ElementsAre(1001, 1002));
  EXPECT_THAT(job.gids(), ElementsAre(500));
  EXPECT_THAT(job.clients(), ElementsAre("n[1-4]", "n7"));
  EXPECT_EQ(job.account(), "phys");
  EXPECT_EQ(job.time_limit_seconds(), 28800U);
  EXPECT_THAT(job.words(), ElementsAre("weight=4"));
}

TEST(Command, JobStartNamesTheOptionThatIsWrong) {
  const Command good = {
      .verb = Verb::job_start, .name = "1", .nodes = 1, .users = {"0"}, .clients = "n1"};
  Command bad = good;
  bad.users = {"bob"};
  EXPECT_THAT(problem_of(bad), HasSubstr("--uid: \"bob\""));
  bad = good;
  bad.groups = {"-1"};
  EXPECT_THAT(problem_of(bad), HasSubstr("--gid: \"-1\""));
  bad = good;
  bad.clients = "n[1";
  EXPECT_THAT(problem_of(bad), HasSubstr("--clients: "));
  bad = good;
  bad.time_limit = "30";
  EXPECT_THAT(problem_of(bad), HasSubstr("--time-limit: "));
  bad = good;
  bad.nodes = 0;
  EXPECT_THAT(problem_of(bad), HasSubstr("--nodes: "));
}

TEST(Command, JobStopAndListAreActionsOfJobs) {
  EXPECT_EQ(request_of({.verb = Verb::job_stop, .name = "7"}).job().jobid(), "7");
  EXPECT_EQ(request_of({.verb = Verb::job_stop, .name = "7"}).job().action(), control::Job::STOP);
  EXPECT_EQ(request_of({.verb = Verb::job_list}).job().action(), control::Job::LIST);
}

TEST(Command, BypassIsOnWithATimeOrOff) {
  const auto on = request_of({.verb = Verb::bypass, .name = "on", .words = {"for=2h"}}).bypass();
  EXPECT_TRUE(on.on());
  EXPECT_EQ(on.for_seconds(), 7200U);
  EXPECT_FALSE(request_of({.verb = Verb::bypass, .name = "off"}).bypass().on());
  EXPECT_THAT(problem_of({.verb = Verb::bypass, .name = "of"}), HasSubstr("expected on or off"));
  EXPECT_THAT(problem_of({.verb = Verb::bypass, .name = "off", .words = {"for=2h"}}),
              HasSubstr("takes no"));
  EXPECT_THAT(problem_of({.verb = Verb::bypass, .name = "on", .words = {"for=2"}}),
              HasSubstr("for: "));
  EXPECT_THAT(problem_of({.verb = Verb::bypass, .name = "on", .words = {"2h"}}),
              HasSubstr("expected for=TIME, such as for=2h"));
}

TEST(Command, StatusIsASummaryUnlessJsonIsAsked) {
  EXPECT_TRUE(to_request({.verb = Verb::status}, kNames, false)->has_stats());
  EXPECT_TRUE(to_request({.verb = Verb::status}, kNames, true)->has_status());
}

TEST(Command, EveryOtherVerbHasItsRequest) {
  EXPECT_EQ(request_of({.verb = Verb::who, .name = "n1"}).why().who(), "n1");
  EXPECT_TRUE(request_of({.verb = Verb::reload}).has_reload());
  EXPECT_TRUE(request_of({.verb = Verb::drain}).has_drain());
  EXPECT_TRUE(request_of({.verb = Verb::top}).stats().rules());
  EXPECT_TRUE(request_of({.verb = Verb::stat}).has_stats());
  EXPECT_TRUE(request_of({.verb = Verb::job_stats}).has_stats());
}

}  // namespace
}  // namespace vpfs::ctl
