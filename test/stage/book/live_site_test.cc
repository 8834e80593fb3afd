// What a coordinator's site brings to a stage.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/stage/book/driver.h"

namespace vpfs::stage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

ReplaceSite::Rule rule(std::string name, std::vector<std::string> words = {},
                       std::optional<WallTime> until = {}) {
  return {.text = {.name = std::move(name), .condition = "uid=9", .words = std::move(words)},
          .until = until};
}
ReplaceSite::Job job(std::string id, std::string client = "10.0.0.1",
                     std::optional<WallTime> until = {}) {
  return {.job = {.jobid = std::move(id), .clients = {std::move(client)}}, .until = until};
}
ReplaceSite site(std::vector<ReplaceSite::Rule> rules, std::vector<ReplaceSite::Job> jobs = {}) {
  return {.site = "site", .rules = std::move(rules), .jobs = std::move(jobs)};
}

// "gold: why" for each that is not in force.
std::vector<std::string> suspended(const BookDriver& driver) {
  std::vector<std::string> all;
  for (const Suspended& each : driver.composed().suspended) {
    all.push_back(each.name + ": " + each.text);
  }
  return all;
}
// Ids with their first clients.
std::vector<std::string> jobs(const BookDriver& driver) {
  std::vector<std::string> all;
  for (const RegisteredJob& each : driver.composed().config.jobs) {
    all.push_back(each.jobid + "@" + each.clients.front());
  }
  return all;
}

TEST(LiveSite, TakesThePlaceOfTheOneBeforeAndWhatIsAsBeforeKeepsItsAge) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("here")), "");
  ASSERT_EQ(driver.refusal(site({rule("gold", {"weight=3"}), rule("lead")}, {job("1"), job("2")})),
            "");
  EXPECT_THAT(driver.rules(), ElementsAre("here", "gold weight=3", "lead", "climate weight=2",
                                          "nightly vpfs=bulk"));
  EXPECT_THAT(jobs(driver), UnorderedElementsAre("1@10.0.0.1", "2@10.0.0.1"));
  EXPECT_EQ(driver.book.state().version, 1U) << "it is in no version";
  (void)driver.advance(60);
  ASSERT_EQ(
      driver.refusal(site({rule("tin"), rule("gold", {"weight=3"}), rule("lead", {"weight=9"})},
                          {job("2"), job("1", "10.0.0.7")})),
      "");
  EXPECT_THAT(driver.rules(), ElementsAre("here", "tin", "gold weight=3", "lead weight=9",
                                          "climate weight=2", "nightly vpfs=bulk"));
  const auto& rules = driver.book.state().coordinators;
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(rules[1]->since, at(0));
  EXPECT_EQ(rules[2]->since, at(60));
  EXPECT_EQ(rules[2]->by, "site");
  EXPECT_EQ(driver.book.state().site_jobs.at("2").since, at(0));
  EXPECT_EQ(driver.book.state().site_jobs.at("1").since, at(60));
  EXPECT_EQ(driver.replayed().state(), driver.book.state());
  ASSERT_EQ(driver.refusal(site({})), "");
  EXPECT_THAT(driver.rules(), ElementsAre("here", "climate weight=2", "nightly vpfs=bulk"));
  EXPECT_THAT(jobs(driver), IsEmpty());
}

TEST(LiveSite, IsKnownToBeTheSame) {
  BookDriver driver;
  const ReplaceSite one = site({rule("gold"), rule("lead", {}, at(90))}, {job("1"), job("2")});
  ASSERT_EQ(driver.refusal(one), "");
  EXPECT_TRUE(has_site(driver.book.state(), one));
  ReplaceSite other = one;
  std::swap(other.rules[0], other.rules[1]);
  EXPECT_FALSE(has_site(driver.book.state(), other)) << "the order counts";
  other = one;
  std::swap(other.jobs[0], other.jobs[1]);
  EXPECT_TRUE(has_site(driver.book.state(), other));
  other.jobs.pop_back();
  EXPECT_FALSE(has_site(driver.book.state(), other));
  other = one;
  other.rules[1].until = at(91);
  EXPECT_FALSE(has_site(driver.book.state(), other));
  EXPECT_FALSE(has_site(driver.book.state(), site({})));
}

TEST(LiveSite, RulesAndJobsEndByThemselvesToo) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(site({rule("gold", {}, at(100)), rule("lead")},
                                {job("1", "10.0.0.1", at(200)), job("2")})),
            "");
  EXPECT_EQ(driver.book.next_deadline(), at(100));
  EXPECT_THAT(driver.advance(100), ElementsAre("the rule 'gold' has ended"));
  EXPECT_THAT(driver.advance(100), ElementsAre("the job '1' has reached its time limit"));
  EXPECT_THAT(jobs(driver), ElementsAre("2@10.0.0.1"));
  // What is over when it comes is left out, so the same site again is still the same.
  const auto again = driver.prepare(
      site({rule("gold", {}, at(100)), rule("lead")}, {job("1", "10.0.0.1", at(200)), job("2")}));
  ASSERT_TRUE(again);
  EXPECT_THAT(again->warnings, IsEmpty());
  EXPECT_TRUE(has_site(driver.book.state(), std::get<ReplaceSite>(again->operation.what)));
  EXPECT_EQ(driver.replayed().state(), driver.book.state());
}

TEST(LiveSite, ARuleThatDoesNotFitIsNotInForceUntilItDoes) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(site({rule("gold", {"weight=x"}), rule("later", {"vpfs=none"}),
                                 rule("nightly"), rule("bulk"), rule("good")})),
            "");
  EXPECT_THAT(driver.rules(), ElementsAre("good", "climate weight=2", "nightly vpfs=bulk"));
  EXPECT_THAT(suspended(driver),
              UnorderedElementsAre(HasSubstr("gold: "), "later: 'none' is not declared",
                                   "nightly: the configuration file has a rule of this name too",
                                   "bulk: there is another virtual PFS of this name"));
  driver.file.virtual_pfs.push_back({.name = "none"});
  EXPECT_THAT(driver.rules(),
              ElementsAre("later vpfs=none", "good", "climate weight=2", "nightly vpfs=bulk"));
}

TEST(LiveSite, WhatCouldNeverBeInForceIsLeftOutWithAWarning) {
  BookDriver driver;
  const auto change = driver.run(site({rule(""), rule("default", {"weight=2"}),
                                       rule("gold", {"for=1h"}), rule("gold", {"weight=7"})},
                                      {job("1"), job("1"), job("2", "stor7"), job("")}));
  ASSERT_TRUE(change);
  EXPECT_THAT(
      change->warnings,
      ElementsAre(HasSubstr("rule : a name has 1 to"), HasSubstr("rule default: "),
                  "rule gold: is given twice: the first one counts",
                  "job 1: the job '1' is registered already",
                  "job 2: 'stor7' is not an IP address or CIDR block", HasSubstr("job : ")));
  EXPECT_THAT(driver.rules(), ElementsAre("gold", "climate weight=2", "nightly vpfs=bulk"));
  EXPECT_EQ(driver.book.state().site_jobs.size(), 1U);
}

TEST(LiveSite, ALocalRuleOfItsNameGoesBeforeItAndNoOtherIsStarted) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("gold", {"weight=9"})), "");
  ASSERT_EQ(driver.refusal(site({rule("gold", {"weight=3"}), rule("lead")})), "");
  EXPECT_THAT(driver.rules(),
              ElementsAre("gold weight=9", "lead", "climate weight=2", "nightly vpfs=bulk"));
  EXPECT_THAT(suspended(driver),
              ElementsAre("gold: the rule 'gold' of alice (uid 1001) is here, and goes before the "
                          "coordinator's of this name"));
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "gold", .words = {"weight=8"}}), "");
  ASSERT_EQ(driver.refusal(StopRule{"gold"}), "");
  EXPECT_THAT(driver.rules(),
              ElementsAre("gold weight=3", "lead", "climate weight=2", "nightly vpfs=bulk"));
  const auto again = driver.run(start_rule("gold"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ProblemCode::exists);
  EXPECT_THAT(again.error().text, HasSubstr("'gold' is the coordinator's: change it there"));
  // A version that had it comes back.
  ASSERT_EQ(driver.refusal(Rollback{.version = 1}), "");
  EXPECT_EQ(driver.rules().front(), "gold weight=9");
  EXPECT_EQ(driver.replayed().state(), driver.book.state());
}

TEST(LiveSite, ItsRulesAndJobsCannotBeChangedHere) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(site({rule("gold"), rule("job:7", {"weight=2"})}, {job("1")})), "");
  EXPECT_EQ(driver.refusal(StopRule{"gold"}),
            "NAME: 'gold' is the coordinator's: change it there (vpfsctl --coordinator ADDRESS)");
  EXPECT_EQ(driver.refusal(ChangeRule{.name = "job:7", .words = {"weight=8"}}),
            "NAME: 'job:7' is the coordinator's: change it there (vpfsctl --coordinator ADDRESS)");
  EXPECT_EQ(driver.refusal(StopJob{"1"}),
            "JOBID: the job '1' is the coordinator's: stop it there (vpfsctl --coordinator "
            "ADDRESS)");
  ApplySet apply;
  apply.rules.push_back({.text = start_rule("gold").rule});
  EXPECT_THAT(driver.refusal(apply), HasSubstr("'gold' is the coordinator's"));
}

TEST(LiveSite, AnApplyMayKeepALocalRuleOfItsName) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("gold", {"weight=9"})), "");
  ASSERT_EQ(driver.refusal(site({rule("gold", {"weight=3"})})), "");
  ApplySet apply;
  apply.rules.push_back({.text = start_rule("gold", {"weight=7"}).rule});
  ASSERT_EQ(driver.refusal(apply), "");
  EXPECT_EQ(driver.rules().front(), "gold weight=7");
}

TEST(LiveSite, AJobThatIsRegisteredHereOrInTheFileCountsInsteadOfIts) {
  BookDriver driver;
  driver.file.jobs.push_back({.jobid = "2", .clients = {"10.2.0.0"}});
  ASSERT_EQ(driver.refusal(
                StartJob{.job = {.jobid = "1", .clients = {"10.1.0.0"}}, .words = {"weight=4"}}),
            "");
  ASSERT_EQ(driver.refusal(site({rule("job:1", {"weight=9"})}, {job("1"), job("2"), job("3")})),
            "");
  EXPECT_THAT(jobs(driver), UnorderedElementsAre("1@10.1.0.0", "2@10.2.0.0", "3@10.0.0.1"));
  EXPECT_EQ(driver.rules().front(), "job:1 weight=4");
  ASSERT_EQ(driver.refusal(StopJob{"1"}), "");
  EXPECT_THAT(jobs(driver), UnorderedElementsAre("1@10.0.0.1", "2@10.2.0.0", "3@10.0.0.1"));
  EXPECT_EQ(driver.rules().front(), "job:1 weight=9");
}

TEST(LiveSite, WhatItsRulesSendToCanBeStopped) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("here")), "");
  ASSERT_EQ(driver.refusal(site({rule("there", {"vpfs=here"})})), "");
  EXPECT_EQ(driver.rules()[1], "there vpfs=here");
  const auto change = driver.run(StopRule{"here"});
  ASSERT_TRUE(change) << change.error().text;
  EXPECT_THAT(change->warnings,
              ElementsAre(HasSubstr("the coordinator's rule 'there' sends to it")));
  EXPECT_THAT(suspended(driver), ElementsAre("there: 'here' is not declared"));
}

TEST(LiveSite, ItComesWhileASetWaitsForItsConfirmation) {
  BookDriver driver;
  ASSERT_EQ(
      driver.refusal(ApplySet{.rules = {{.text = start_rule("a").rule}}, .shares = {}}, at(60)),
      "");
  ASSERT_EQ(driver.refusal(site({rule("gold")})), "");
  (void)driver.advance(60);
  EXPECT_THAT(driver.rules(), ElementsAre("gold", "climate weight=2", "nightly vpfs=bulk"));
}

TEST(LiveSite, HasABound) {
  BookDriver driver;
  ReplaceSite large = site({});
  large.rules.resize(RuleBook::kMostRules + 1);
  EXPECT_EQ(driver.refusal(large), "rules: more than 10000 rules");
}

}  // namespace
}  // namespace vpfs::stage
