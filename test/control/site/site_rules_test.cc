#include "control/site/site_rules.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/wire/protocol.h"

namespace vpfs::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Told {
  std::string name;
  std::string origin;
  std::uint64_t hits = 0;
  std::string words = {};
  std::string problem = {};
};

void add(control::RuleReply& list, const Told& told) {
  control::RuleState& rule = *list.add_rules();
  rule.set_name(told.name);
  rule.set_origin(told.origin);
  rule.set_hits(told.hits);
  if (!told.words.empty()) rule.add_words(told.words);
  rule.set_problem(told.problem);
}

void add_stage(control::ForwardReply& stages, const std::string& name,
               const std::vector<Told>& rules) {
  auto& answer = *stages.add_answers();
  answer.set_stage(name);
  control::RuleReply& list = *answer.mutable_answer()->mutable_rule_reply();
  for (const Told& each : rules) add(list, each);
}

// "name origin hits at stages", in order.
std::vector<std::string> lines(const control::RuleReply& list) {
  std::vector<std::string> told;
  for (const control::RuleState& rule : list.rules()) {
    told.push_back(rule.name() + " " + rule.origin() + " " + std::to_string(rule.hits()) + " at " +
                   std::to_string(rule.stages()));
  }
  return told;
}

TEST(SiteRules, AStageWhereTheRuleIsNotInForceIsNotCountedAndIsNamed) {
  control::RuleReply list;
  add(list, {"gold", "administrator"});
  control::ForwardReply stages;
  add_stage(stages, "ds0", {{"gold", "coordinator", 7}});
  add_stage(stages, "ds1", {{"gold", "coordinator", 2, "", "users: no such user"}});
  add_lists_of_stages(list, stages);
  EXPECT_EQ(list.stages(), 2U);
  EXPECT_THAT(lines(list), ElementsAre("gold administrator 9 at 1"));
  EXPECT_THAT(list.warnings(), ElementsAre("ds1: gold is not in force there: users: no such user"));
}

TEST(SiteRules, HitsOfAllStagesAreSummed) {
  control::RuleReply list;
  add(list, {"gold", "administrator"});
  add(list, {"default", "file"});
  control::ForwardReply stages;
  add_stage(stages, "ds0", {{"gold", "coordinator", 2700}, {"default", "file", 1}});
  add_stage(stages, "ds1", {{"gold", "coordinator", 4}, {"default", "file", 2}});
  add_lists_of_stages(list, stages);
  EXPECT_EQ(list.stages(), 2U);
  EXPECT_THAT(lines(list), ElementsAre("gold administrator 2704 at 2", "default file 3 at 2"));
}

TEST(SiteRules, RulesOfFilesFollowAndThoseThatDifferAreApart) {
  control::RuleReply list;
  add(list, {"gold", "administrator"});
  control::ForwardReply stages;
  add_stage(stages, "ds0",
            {{"gold", "coordinator", 1}, {"jobs", "file", 5, "weight=1"}, {"default", "file", 0}});
  add_stage(stages, "ds1",
            {{"urgent", "administrator", 3},
             {"jobs", "file", 7, "weight=2"},
             {"gold", "file", 9},
             {"default", "file", 0}});
  add_lists_of_stages(list, stages);
  EXPECT_THAT(lines(list), ElementsAre("gold administrator 1 at 1", "jobs file 5 at 1",
                                       "urgent administrator 3 at 1", "jobs file 7 at 1",
                                       "gold file 9 at 1", "default file 0 at 2"));
}

TEST(SiteRules, ShadowRulesSumWhatTheyWouldHaveHeld) {
  control::RuleReply list;
  add(list, {"gold", "administrator"});
  control::ForwardReply stages;
  for (const char* name : {"ds0", "ds1"}) {
    add_stage(stages, name, {{"gold", "coordinator", 1}});
    auto& rule = *stages.mutable_answers(stages.answers_size() - 1)
                      ->mutable_answer()
                      ->mutable_rule_reply()
                      ->mutable_rules(0);
    rule.mutable_would_hold()->set_requests(3);
    rule.mutable_would_hold()->set_bytes(100);
    rule.mutable_would_hold()->set_seconds_us(7);
  }
  add_lists_of_stages(list, stages);
  EXPECT_EQ(list.rules(0).would_hold().requests(), 6U);
  EXPECT_EQ(list.rules(0).would_hold().bytes(), 200U);
  EXPECT_EQ(list.rules(0).would_hold().seconds_us(), 14U);
}

TEST(SiteRules, AStageWithoutAnAnswerIsAWarning) {
  control::RuleReply list;
  add(list, {"gold", "administrator"});
  control::ForwardReply stages;
  add_stage(stages, "ds0", {{"gold", "coordinator", 1}});
  auto& silent = *stages.add_answers();
  silent.set_stage("ds1");
  *silent.mutable_answer()->mutable_error() =
      control::make_error(control::Error::UNAVAILABLE, "", "did not answer");
  add_lists_of_stages(list, stages);
  EXPECT_THAT(lines(list), ElementsAre("gold administrator 1 at 1"));
  EXPECT_EQ(list.stages(), 1U);
  EXPECT_THAT(std::vector<std::string>(list.warnings().begin(), list.warnings().end()),
              ElementsAre(HasSubstr("ds1: did not answer: its rules and hits are not counted")));
}

}  // namespace
}  // namespace vpfs::coordinator
