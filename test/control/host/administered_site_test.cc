// What a coordinator's site brings, through the port's messages.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "test/control/host/administration_rig.h"

namespace vpfs::control {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Caller kCoordinator = {.name = "coordinator coord:7311",
                             .from = "coord",
                             .rights = Rights::change,
                             .uid = std::nullopt};

class AdministeredSite : public AdministrationTest {
 protected:
  static Site site_of(const std::vector<std::pair<std::string, std::string>>& rules) {
    Site site;
    site.set_origin("north");
    for (const auto& [name, word] : rules) {
      Site::Rule& rule = *site.add_rules();
      rule.set_name(name);
      rule.set_condition("uid=1001");
      if (!word.empty()) rule.add_words(word);
    }
    return site;
  }
  static void add_job(Site& site, const std::string& jobid, std::uint32_t uid) {
    JobState& job = *site.add_jobs();
    job.set_jobid(jobid);
    job.add_clients("10.0.0.9");
    job.add_uids(uid);
  }
  Envelope tell(const Site& site) {
    Envelope request;
    *request.mutable_site() = site;
    return ask(request, kCoordinator);
  }
  // Names are looked up when the test says so.
  void look_up_later() {
    file_.names = &names_;
    start();
    lookups_.later = true;
  }
  // A site with a name that is to be looked up.
  static Site site_of_host() {
    Site site = site_of({{"gold", ""}});
    site.mutable_rules(0)->set_condition("client=login1");
    return site;
  }
  // As tell(), with an answer that may come later.
  void tell(const Site& site, Envelope& reply) {
    Envelope request;
    *request.mutable_site() = site;
    administration_->ask(request, kCoordinator,
                         Answer([&reply](Envelope come) { reply = std::move(come); }));
  }
  static Site of_term(Site site, std::uint64_t term) {
    site.set_term(term);
    return site;
  }
  static std::vector<std::string> warnings(const Envelope& reply) {
    return {reply.ack().warnings().begin(), reply.ack().warnings().end()};
  }
  RuleState rule_called(const std::string& name) {
    for (const RuleState& each : ask(action_of(Rule::LIST)).rule_reply().rules()) {
      if (each.name() == name) return each;
    }
    ADD_FAILURE() << name;
    return {};
  }
  std::vector<std::string> jobs(const Caller& caller = kChief) {
    std::vector<std::string> all;
    Job list;
    list.set_action(Job::LIST);
    for (const JobState& job : ask(list, caller).job_reply().jobs()) {
      all.push_back(job.jobid() + " of " + job.origin());
    }
    return all;
  }
};

TEST_F(AdministeredSite, IsInForceAtOnceAndListedAsTheCoordinators) {
  Site site = site_of({{"gold", "weight=3"}, {"lead", ""}});
  add_job(site, "77", 1001);
  const Envelope reply = tell(site);
  EXPECT_EQ(why_not(reply), "");
  EXPECT_EQ(reply.ack().text(), "2 rules and 1 jobs of north");
  EXPECT_THAT(warnings(reply), IsEmpty());
  EXPECT_THAT(rules(), ElementsAre("gold", "lead", "job-{jobid}", "default"));
  EXPECT_EQ(rule_called("gold").origin(), "coordinator");
  EXPECT_EQ(rule_called("gold").by(), "north");
  EXPECT_EQ(rule_called("gold").since_at(), wall_.time_since_epoch().count());
  EXPECT_THAT(jobs(), ElementsAre("77 of coordinator"));
  EXPECT_THAT(jobs(kAlice), ElementsAre("77 of coordinator")) << "it is Alice's";
}

TEST_F(AdministeredSite, TheSameAgainChangesNothingAndWritesNothing) {
  Site site = site_of({{"gold", "weight=3"}, {"wrong", "class=none"}});
  site.mutable_rules(0)->set_until_at(at(100).time_since_epoch().count());
  add_job(site, "77", 1001);
  const Envelope first = tell(site);
  EXPECT_NE(first.ack().text(), "");
  EXPECT_THAT(warnings(first), ElementsAre(HasSubstr("rule wrong: class: ")));
  const std::size_t written = journal_.appended;
  const int used = stage_->reconfigured;
  const Envelope again = tell(site);
  EXPECT_EQ(again.ack().text(), "");
  EXPECT_EQ(warnings(again), warnings(first)) << "it hears of what does not fit";
  EXPECT_EQ(journal_.appended, written);
  EXPECT_EQ(stage_->reconfigured, used);
  wall_ = at(100);
  administration_->tick();
  EXPECT_EQ(tell(site).ack().text(), "") << "what is over here is not a change";
  site.mutable_rules(0)->set_until_at(0);
  EXPECT_NE(tell(site).ack().text(), "");
  EXPECT_THAT(rules(), ElementsAre("gold", "job-{jobid}", "default", "wrong"));
}

TEST_F(AdministeredSite, SurvivesARestart) {
  Site site = site_of({{"gold", "weight=3"}});
  add_job(site, "77", 1001);
  (void)tell(site);
  start();
  EXPECT_THAT(rules(), ElementsAre("gold", "job-{jobid}", "default"));
  EXPECT_THAT(jobs(), ElementsAre("77 of coordinator"));
  EXPECT_EQ(tell(site).ack().text(), "");
  (void)tell(site_of({}));
  start();
  EXPECT_THAT(rules(), ElementsAre("job-{jobid}", "default"));
}

TEST_F(AdministeredSite, WhatIsHereGoesBeforeItAndTheWarningNamesBoth) {
  (void)ask(start_of("gold", "uid=7", {"weight=9"}));
  (void)ask(job_of("77", 1002));
  Site site = site_of({{"gold", "weight=3"}, {"job-{jobid}", ""}});
  add_job(site, "77", 1001);
  const Envelope reply = tell(site);
  EXPECT_THAT(warnings(reply),
              ElementsAre("rule gold: the rule 'gold' of ops (uid 0) is here, and goes before the "
                          "coordinator's of this name",
                          "rule job-{jobid}: the configuration file has a rule of this name too",
                          "job 77: ops (uid 0) has registered it here, which counts"));
  EXPECT_THAT(jobs(), ElementsAre("77 of job"));
  // Both are listed.
  std::vector<std::string> origins;
  for (const RuleState& each : ask(action_of(Rule::LIST)).rule_reply().rules()) {
    if (each.name() == "gold") origins.push_back(each.origin() + " " + each.words(0));
  }
  EXPECT_THAT(origins, ElementsAre("administrator weight=9", "coordinator weight=3"));
  (void)ask(action_of(Rule::STOP, "gold"));
  EXPECT_EQ(rule_called("gold").origin(), "coordinator");
  EXPECT_EQ(rule_called("gold").problem(), "");
}

TEST_F(AdministeredSite, AnAdministratorIsToldWhereToChangeIt) {
  (void)tell(site_of({{"gold", "weight=3"}}));
  EXPECT_THAT(why_not(ask(action_of(Rule::STOP, "gold"))),
              HasSubstr("'gold' is the coordinator's: change it there (vpfsctl --coordinator"));
  Rule change = action_of(Rule::CHANGE, "gold");
  change.add_words("weight=4");
  EXPECT_THAT(why_not(ask(change)), HasSubstr("is the coordinator's"));
  const Envelope start = ask(start_of("gold", "uid=1"));
  EXPECT_EQ(start.error().code(), Error::EXISTS);
}

TEST_F(AdministeredSite, NeverKeepsAFileFromBeingTakenOn) {
  (void)tell(site_of({{"gold", "weight=3"}}));
  stage::Config file = file_config();
  add_rule(file, {.name = "gold", .condition = "uid=3", .words = {}});
  EXPECT_TRUE(live_->fits(file));
  live_->take_on(file);
  EXPECT_THAT(rule_called("gold").origin(), "file");
  EXPECT_THAT(warnings(tell(site_of({{"gold", "weight=3"}}))),
              Contains(HasSubstr("the configuration file has a rule of this name too")));
  live_->take_on(file_);
}

TEST_F(AdministeredSite, ADiskThatIsFullLeavesTheOneBefore) {
  (void)tell(site_of({{"gold", "weight=3"}}));
  journal_.fails = true;
  const Envelope reply = tell(site_of({{"lead", ""}}));
  EXPECT_EQ(reply.error().code(), Error::UNAVAILABLE);
  EXPECT_THAT(rules(), ElementsAre("gold", "job-{jobid}", "default"));
  EXPECT_EQ(tell(site_of({{"gold", "weight=3"}})).ack().text(), "");
}

TEST_F(AdministeredSite, NamesInNewConditionsAreLookedUpBeforehand) {
  look_up_later();
  Envelope reply;
  tell(site_of_host(), reply);
  EXPECT_THAT(lookups_.wanted.hosts, ElementsAre("login1"));
  ASSERT_EQ(lookups_.pending.size(), 1U);
  EXPECT_FALSE(reply.has_ack());
  lookups_.pending[0]("the name service hangs");
  EXPECT_EQ(reply.error().code(), Error::UNAVAILABLE);
}

TEST_F(AdministeredSite, ASlowLookUpDoesNotBringBackWhatALaterSiteHasReplaced) {
  look_up_later();
  Envelope slow;
  tell(site_of_host(), slow);
  ASSERT_EQ(lookups_.pending.size(), 1U);
  EXPECT_NE(tell(site_of({{"lead", ""}})).ack().text(), "");
  lookups_.pending[0](std::nullopt);
  EXPECT_EQ(slow.error().code(), Error::OUTDATED);
  EXPECT_THAT(rules(), ElementsAre("lead", "job-{jobid}", "default"));
}

TEST_F(AdministeredSite, OfTwoWhoseNamesAreLookedUpTheLaterOneCounts) {
  look_up_later();
  Envelope first;
  Envelope second;
  tell(site_of_host(), first);
  Site other = site_of_host();
  other.mutable_rules(0)->set_name("lead");
  tell(other, second);
  ASSERT_EQ(lookups_.pending.size(), 2U);
  lookups_.pending[1](std::nullopt);
  lookups_.pending[0](std::nullopt);
  EXPECT_EQ(first.error().code(), Error::OUTDATED);
  EXPECT_EQ(why_not(second), "");
  EXPECT_THAT(rules(), Contains("lead"));
}

TEST_F(AdministeredSite, OfAFormerLeaderIsRefused) {
  EXPECT_EQ(why_not(tell(of_term(site_of({{"gold", ""}}), 2))), "");
  EXPECT_THAT(why_not(tell(of_term(site_of({{"old", ""}}), 1))),
              HasSubstr("term: this site is of term 1"));
  EXPECT_EQ(tell(of_term(site_of({{"old", ""}}), 1)).error().code(), Error::OUTDATED);
  EXPECT_THAT(rules(), ElementsAre("gold", "job-{jobid}", "default"));
  term_of_cycles_ = 3;
  EXPECT_EQ(tell(of_term(site_of({{"old", ""}}), 2)).error().code(), Error::OUTDATED)
      << "a cycle has told of the later term";
  EXPECT_EQ(why_not(tell(of_term(site_of({{"lead", ""}}), 3))), "");
  EXPECT_EQ(why_not(tell(site_of({{"any", ""}}))), "") << "an older coordinator says no term";
}

TEST_F(AdministeredSite, ACycleOfALaterTermOvertakesASlowLookUp) {
  look_up_later();
  Envelope slow;
  tell(of_term(site_of_host(), 1), slow);
  term_of_cycles_ = 2;
  lookups_.pending[0](std::nullopt);
  EXPECT_EQ(slow.error().code(), Error::OUTDATED);
  EXPECT_THAT(rules(), ElementsAre("job-{jobid}", "default"));
}

TEST_F(AdministeredSite, ARefusedOneDoesNotOvertakeASlowLookUp) {
  look_up_later();
  Envelope slow;
  tell(of_term(site_of_host(), 2), slow);
  (void)tell(of_term(site_of({{"old", ""}}), 1));
  lookups_.pending[0](std::nullopt);
  EXPECT_EQ(why_not(slow), "");
  EXPECT_THAT(rules(), Contains("gold"));
}

}  // namespace
}  // namespace vpfs::control
