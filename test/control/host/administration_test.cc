#include "control/host/administration.h"

#include <algorithm>
#include <limits>
#include <span>

#include <gmock/gmock.h>

#include "test/control/host/administration_rig.h"

namespace vpfs::control {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr Duration kLease = std::chrono::seconds(1);

TEST_F(AdministrationTest, ARuleIsStartedChangedAndStopped) {
  const Envelope started = ask(start_of("night", "uid=7", {"weight=4", "rate=5MiB/s"}));
  EXPECT_EQ(why_not(started), "");
  EXPECT_EQ(started.rule_reply().text(),
            "rule night started; this is version 1; rate and iops count for each data server");
  EXPECT_THAT(rules(), ElementsAre("night", "job-{jobid}", "default"));
  EXPECT_EQ(stage_->reconfigured, 1);

  Rule change = action_of(Rule::CHANGE, "night");
  change.add_words("weight=8");
  EXPECT_EQ(ask(change).rule_reply().version(), 2U);
  const Envelope list = ask(action_of(Rule::LIST));
  EXPECT_EQ(list.rule_reply().rules(0).origin(), "administrator");
  EXPECT_EQ(list.rule_reply().rules(0).by(), kChief.name);
  EXPECT_THAT(list.rule_reply().rules(0).words(), ElementsAre("weight=8", "rate=5MiB/s"));

  EXPECT_EQ(why_not(ask(action_of(Rule::STOP, "night"))), "");
  EXPECT_THAT(rules(), ElementsAre("job-{jobid}", "default"));
  EXPECT_EQ(stage_->reconfigured, 3);
}

TEST_F(AdministrationTest, WhatIsRefusedSaysWhereAndReachesNeitherJournalNorStage) {
  EXPECT_THAT(why_not(ask(start_of("night", "uid=7", {"rate=5"}))), HasSubstr("rate: "));
  EXPECT_THAT(why_not(ask(start_of("night", "jobbid=x"))), HasSubstr("COND:0: "));
  EXPECT_EQ(ask(action_of(Rule::STOP, "none")).error().code(), Error::NOT_FOUND);
  EXPECT_EQ(ask(action_of(Rule::STOP, "default")).error().code(), Error::INVALID);
  EXPECT_THAT(why_not(ask(start_of("night", "target=7"))), HasSubstr("the protocol orangefs"))
      << "this wire shows no target";
  EXPECT_EQ(ask(action_of(static_cast<Rule::Action>(99))).error().code(), Error::UNSUPPORTED);
  EXPECT_EQ(stage_->reconfigured, 0);
  EXPECT_THAT(journal_.records, IsEmpty());
}

TEST_F(AdministrationTest, ADryRunShowsTheDifferenceAndChangesNothing) {
  Rule apply = action_of(Rule::APPLY);
  apply.set_file("rules: [{name: night, match: 'uid=7', weight: 4}]");
  apply.set_dry_run(true);
  const Envelope reply = ask(apply);
  EXPECT_EQ(why_not(reply), "");
  ASSERT_EQ(reply.rule_reply().differences_size(), 1);
  EXPECT_EQ(reply.rule_reply().differences(0).name(), "night");
  EXPECT_EQ(reply.rule_reply().differences(0).kind(), "added");
  EXPECT_EQ(reply.rule_reply().text(), "nothing was changed: this is a dry run");
  EXPECT_EQ(stage_->reconfigured, 0);
  EXPECT_THAT(journal_.records, IsEmpty());
  EXPECT_THAT(rules(), ElementsAre("job-{jobid}", "default"));
}

TEST_F(AdministrationTest, AnAppliedSetGoesBackByItselfUnlessConfirmed) {
  Rule apply = action_of(Rule::APPLY);
  apply.set_file("rules: [{name: night, match: 'uid=7', weight: 4}]");
  apply.set_confirm_seconds(60);
  EXPECT_EQ(ask(apply).rule_reply().confirm_by_at(), at(60).time_since_epoch().count());
  EXPECT_EQ(ask(start_of("other", "uid=8")).error().code(), Error::UNAVAILABLE);
  wall_ = at(60);
  administration_->tick();
  EXPECT_THAT(rules(), ElementsAre("job-{jobid}", "default"));
  EXPECT_EQ(stage_->reconfigured, 2);
  EXPECT_TRUE(ask(action_of(Rule::CONFIRM)).has_error());

  ASSERT_EQ(why_not(ask(apply)), "");
  ASSERT_EQ(why_not(ask(action_of(Rule::CONFIRM))), "");
  wall_ = at(600);
  administration_->tick();
  EXPECT_THAT(rules(), ElementsAre("night", "job-{jobid}", "default"));
}

// What `vpfsctl --atomic` does with each kind of change.
TEST_F(AdministrationTest, EveryChangeOfARuleCanWaitForAConfirmation) {
  ASSERT_EQ(why_not(ask(start_of("night", "uid=7", {"weight=4"}))), "");
  Rule started = start_of("more", "uid=8");
  Rule changed = action_of(Rule::CHANGE, "night");
  changed.add_words("weight=8");
  Rule share = action_of(Rule::CHANGE, "default");
  share.add_words("weight=3");
  const Rule stopped = action_of(Rule::STOP, "night");
  for (Rule change : {started, changed, share, stopped}) {
    SCOPED_TRACE(change.ShortDebugString());
    const auto before = live_->composed().config.rules;
    const std::uint64_t version = live_->book().state().version;
    change.set_confirm_seconds(30);
    const Envelope reply = ask(change);
    ASSERT_EQ(why_not(reply), "");
    EXPECT_EQ(reply.rule_reply().confirm_by_at(),
              (wall_ + std::chrono::seconds(30)).time_since_epoch().count());
    EXPECT_EQ(reply.rule_reply().version(), version + 1);
    Rule back = action_of(Rule::ROLLBACK);
    back.set_version(version);
    ASSERT_EQ(why_not(ask(back)), "");
    EXPECT_EQ(live_->composed().config.rules, before);
    EXPECT_FALSE(live_->book().state().pending);

    ASSERT_EQ(why_not(ask(change)), "");
    start();
    wall_ += std::chrono::seconds(30);
    administration_->tick();
    EXPECT_EQ(live_->composed().config.rules, before) << "it goes back by itself";

    ASSERT_EQ(why_not(ask(change)), "");
    ASSERT_EQ(why_not(ask(action_of(Rule::CONFIRM))), "");
    wall_ += std::chrono::seconds(300);
    administration_->tick();
    EXPECT_NE(live_->book().state().version, version);
  }
}

TEST_F(AdministrationTest, ARuleOfAJobCannotWaitForAConfirmation) {
  Job job = job_of("4711", 1001);
  job.add_words("weight=4");
  ASSERT_EQ(why_not(ask(job)), "");
  Rule stop = action_of(Rule::STOP, "job:4711");
  stop.set_confirm_seconds(30);
  EXPECT_THAT(why_not(ask(stop)), HasSubstr("only changes of administrators' rules"));
  EXPECT_THAT(rules(), ElementsAre("job:4711", "job-{jobid}", "default"));
}

TEST_F(AdministrationTest, TimesBeyondAllBoundsAreRefused) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t seconds : {kMost, kMost / 2, std::uint64_t{1} << 40U}) {
    Rule rule = start_of("night", "uid=7");
    rule.set_confirm_seconds(seconds);
    EXPECT_EQ(ask(rule).error().code(), Error::INVALID) << seconds;
    Job job = job_of("1", 1);
    job.set_time_limit_seconds(seconds);
    EXPECT_TRUE(ask(job).has_error()) << seconds;
    Envelope bypass;
    bypass.mutable_bypass()->set_on(true);
    bypass.mutable_bypass()->set_for_seconds(seconds);
    EXPECT_EQ(ask(bypass).error().code(), Error::INVALID) << seconds;
  }
  EXPECT_THAT(journal_.records, IsEmpty());
}

// A wire that shows the owner of a file beside the user.
class AdministrationWithOwnersTest : public AdministrationTest {
 protected:
  AdministrationWithOwnersTest() : AdministrationTest(config()) {}
  static stage::Config config() {
    stage::Config config;
    config.source = "the protocol beegfs";
    config.shown = {Attribute::uid, Attribute::node, Attribute::target, Attribute::owner,
                    Attribute::directory};
    config.virtual_pfs.push_back({.name = "default"});
    return config;
  }
};

TEST_F(AdministrationWithOwnersTest, ARuleByUserAloneIsAWarningWithTheRuleThatHolds) {
  EXPECT_THAT(ask(start_of("one", "uid=7")).rule_reply().warnings(),
              ElementsAre(AllOf(HasSubstr("rule one: "), HasSubstr("go to `default`"),
                                HasSubstr("a rule by owner= holds them"))));
  EXPECT_THAT(ask(start_of("two", "owner=8")).rule_reply().warnings(), IsEmpty());
  EXPECT_THAT(ask(start_of("three", "uid=9 owner=9")).rule_reply().warnings(), IsEmpty());
}

TEST_F(AdministrationTest, ARuleThatNeverAppliesIsAWarningWithBothNames) {
  ASSERT_EQ(why_not(ask(start_of("one", "uid=7"))), "");
  const Envelope hidden = ask(start_of("all", "uid={1-100}"));
  EXPECT_THAT(hidden.rule_reply().warnings(),
              Contains("rule one never applies: all before it matches everything that it would"));
  EXPECT_EQ(ask(action_of(Rule::LIST)).rule_reply().rules(1).hidden_by(), "all");
  EXPECT_THAT(ask(start_of("two", "uid=200")).rule_reply().warnings(),
              Not(Contains(HasSubstr("never applies"))))
      << "it neither hides a rule nor is hidden";
}

TEST_F(AdministrationTest, ABypassThatTheJournalMissesIsWrittenOnceThereIsRoom) {
  Envelope on;
  on.mutable_bypass()->set_on(true);
  EXPECT_EQ(ask(on).ack().warnings_size(), 0);
  journal_.fails = true;
  Envelope off;
  off.mutable_bypass();
  const Envelope reply = ask(off);
  EXPECT_EQ(reply.ack().text(), "bypass is off: requests are scheduled again");
  ASSERT_EQ(reply.ack().warnings_size(), 1);
  EXPECT_THAT(reply.ack().warnings(0), HasSubstr("control.journal cannot be written"));
  administration_->tick();
  journal_.fails = false;
  administration_->tick();
  EXPECT_TRUE(live_->is_behind()) << "a full disk is not asked every second";
  stage_->advance(std::chrono::seconds(10));
  administration_->tick();
  EXPECT_FALSE(live_->is_behind());
  start();
  EXPECT_FALSE(stage_->bypassed()) << "the last word of the administrator";
}

TEST_F(AdministrationTest, BypassReachesTheStageOnceAndEndsByItself) {
  Envelope on;
  on.mutable_bypass()->set_on(true);
  on.mutable_bypass()->set_for_seconds(60);
  EXPECT_EQ(ask(on).ack().text(), "bypass is on until 2027-01-15 08:01:00 UTC: nothing is held");
  EXPECT_TRUE(stage_->bypassed());
  EXPECT_EQ(stats().stats_reply().bypass_until_at(), at(60).time_since_epoch().count());
  start();
  EXPECT_TRUE(stage_->bypassed()) << "it survives a restart";
  wall_ = at(60);
  administration_->tick();
  EXPECT_FALSE(stage_->bypassed());
  Envelope off;
  off.mutable_bypass();
  EXPECT_EQ(ask(off).ack().text(), "bypass is off: requests are scheduled again");
  EXPECT_FALSE(stage_->bypassed()) << "it was off already";
}

TEST_F(AdministrationTest, JobsAreRegisteredAgainWhenTheyAreRequeuedAndEndByTheirLimit) {
  Job job = job_of("4711_3", 1001);
  job.set_time_limit_seconds(100);
  EXPECT_EQ(ask(job).job_reply().text(), "job 4711_3 registered");
  job.clear_clients();
  job.add_clients("10.0.0.2");
  EXPECT_EQ(ask(job).job_reply().text(), "job 4711_3 registered again");
  Job list;
  const Envelope jobs = ask(list);
  ASSERT_EQ(jobs.job_reply().jobs_size(), 1);
  EXPECT_THAT(jobs.job_reply().jobs(0).clients(), ElementsAre("10.0.0.2"));
  EXPECT_EQ(jobs.job_reply().jobs(0).until_at(), at(100).time_since_epoch().count());
  EXPECT_EQ(jobs.job_reply().jobs(0).origin(), "job");
  wall_ = at(100);
  administration_->tick();
  EXPECT_EQ(ask(list).job_reply().jobs_size(), 0);
  Job stop = list;
  stop.set_action(Job::STOP);
  stop.set_jobid("4711_3");
  EXPECT_EQ(ask(stop).error().code(), Error::NOT_FOUND);
}

TEST_F(AdministrationTest, HistoryTellsTheUserOfEachChangeAndRollbackBringsItBack) {
  ASSERT_EQ(why_not(ask(start_of("a", "uid=7", {"weight=4"}))), "");
  ASSERT_EQ(why_not(ask(action_of(Rule::STOP, "a"))), "");
  const Envelope history = ask(action_of(Rule::HISTORY));
  ASSERT_EQ(history.rule_reply().history_size(), 2);
  EXPECT_EQ(history.rule_reply().history(0).command(), "rule start a uid=7 weight=4");
  EXPECT_EQ(history.rule_reply().history(0).who(), kChief.name);
  EXPECT_EQ(history.rule_reply().history(1).differences(0).kind(), "removed");
  Rule back = action_of(Rule::ROLLBACK);
  back.set_version(1);
  EXPECT_EQ(ask(back).rule_reply().text(), "rolled back to version 1; this is version 3");
  EXPECT_THAT(rules(), ElementsAre("a", "job-{jobid}", "default"));
  back.set_version(77);
  EXPECT_EQ(ask(back).error().code(), Error::NOT_FOUND);
}

TEST_F(AdministrationTest, AChangeOfAFilesShareIsTheAdministrators) {
  Rule change = action_of(Rule::CHANGE, "default");
  change.add_words("weight=7");
  change.add_words("for=1h");
  ASSERT_EQ(why_not(ask(change)), "");
  const Envelope list = ask(action_of(Rule::LIST));
  const RuleState last = list.rule_reply().rules(list.rule_reply().rules_size() - 1);
  EXPECT_EQ(last.name(), "default");
  EXPECT_EQ(last.origin(), "administrator");
  EXPECT_EQ(last.until_at(), at(3600).time_since_epoch().count());
  EXPECT_THAT(last.words(), ElementsAre("weight=7"));
  wall_ = at(3600);
  administration_->tick();
  EXPECT_EQ(ask(action_of(Rule::LIST)).rule_reply().rules(1).origin(), "file");
}

class FewNames final : public stage::Names {
 public:
  [[nodiscard]] std::optional<std::uint32_t> user(const std::string& name) const override {
    ++asked;
    return name == "alice" ? std::optional<std::uint32_t>(1001) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string&) const override {
    ++asked;
    return std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> addresses(const std::string& host) const override {
    ++asked;
    if (host.starts_with("n")) return {"10.0.0." + host.substr(1)};
    return {};
  }
  mutable int asked = 0;
};

// Names are looked up before anything is carried out.
class NamedThings : public AdministrationTest {
 protected:
  NamedThings() : AdministrationTest(file_config(), HostNames(databases_)) {
    file_.names = &names_;
    databases_.asked = 0;
  }
  static inline const FewNames databases_;
};

TEST_F(NamedThings, AreLookedUpByTheOwnerBeforeTheRequestIsCarriedOut) {
  lookups_.later = true;
  Envelope request;
  *request.mutable_job() = job_of("7", 1001, {"n[1-3]", "10.9.9.9"});
  std::optional<Envelope> reply;
  administration_->ask(request, kChief, Answer([&](Envelope come) { reply = std::move(come); }));
  EXPECT_FALSE(reply);
  EXPECT_EQ(databases_.asked, 0) << "nothing may block";
  EXPECT_THAT(lookups_.wanted.hosts, ElementsAre("n1", "n2", "n3"));
  ASSERT_EQ(lookups_.pending.size(), 1U);
  lookups_.pending[0](std::nullopt);
  ASSERT_TRUE(reply);
  EXPECT_EQ(why_not(*reply), "");
  Job list;
  EXPECT_THAT(ask(list).job_reply().jobs(0).clients(),
              ElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.9.9.9"));
}

// A name service that may be away.
class LateNames final : public stage::Names {
 public:
  [[nodiscard]] std::optional<std::uint32_t> user(const std::string& name) const override {
    return is_there && name == "alice" ? std::optional(1001U) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string&) const override {
    return std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> addresses(const std::string&) const override { return {}; }

  bool is_there = true;
};

class LateThings : public AdministrationTest {
 protected:
  LateThings() : AdministrationTest(file_config(), HostNames(databases_)) {
    file_.names = &names_;
    databases_.is_there = true;
  }
  static inline LateNames databases_;
};

TEST_F(LateThings, ALiveRuleIsInForceWhenTheNameServiceIsBack) {
  ASSERT_EQ(why_not(ask(start_of("a", "uid=alice"))), "");
  databases_.is_there = false;
  names_.find_user("alice");
  lookups_.later = true;
  start();
  ASSERT_THAT(live_->composed().suspended, SizeIs(1));
  EXPECT_THAT(lookups_.wanted.users, ElementsAre("alice"));
  lookups_.pending.at(0)("the name service is slow");
  administration_->tick();
  EXPECT_THAT(lookups_.pending, SizeIs(1)) << "not all the time";
  stage_->advance(std::chrono::seconds(30));
  administration_->tick();
  ASSERT_THAT(lookups_.pending, SizeIs(2));
  databases_.is_there = true;
  names_.find_user("alice");
  lookups_.pending[1](std::nullopt);
  EXPECT_THAT(live_->composed().suspended, IsEmpty());
  stage_->advance(std::chrono::seconds(30));
  administration_->tick();
  EXPECT_THAT(lookups_.pending, SizeIs(2)) << "nothing is missing";
}

TEST_F(NamedThings, ThatCannotBeLookedUpInTimeChangeNothing) {
  lookups_.later = true;
  Envelope request;
  *request.mutable_rule() = start_of("a", "uid=alice&client=n1");
  Envelope reply;
  administration_->ask(request, kChief, Answer([&](Envelope come) { reply = std::move(come); }));
  EXPECT_THAT(lookups_.wanted.users, ElementsAre("alice"));
  EXPECT_THAT(lookups_.wanted.hosts, ElementsAre("n1"));
  lookups_.pending.at(0)("the name service is slow");
  EXPECT_EQ(reply.error().code(), Error::UNAVAILABLE);
  EXPECT_THAT(journal_.records, IsEmpty());
}

TEST_F(NamedThings, OfASetAndOfChangedRulesAreFoundToo) {
  ASSERT_EQ(why_not(ask(start_of("a", "uid=alice"))), "");
  Rule apply = action_of(Rule::APPLY);
  apply.set_file("rules: [{name: night, match: 'client=n4', weight: 4}]");
  ASSERT_EQ(why_not(ask(apply)), "");
  EXPECT_THAT(lookups_.wanted.hosts, ElementsAre("n4"));
  EXPECT_THAT(why_not(ask(start_of("b", "uid=bob"))), HasSubstr("bob"));
}

// The look at the names prepares the change, which is used at once if there are none.
TEST_F(NamedThings, AChangeIsPreparedAnewIfARuleHasEndedSinceTheLook) {
  ASSERT_EQ(why_not(ask(start_of("old", "uid=5", {"for=60s"}))), "");
  // The rule ends between the first look at the clock and the second.
  administer([] { return wall_ += std::chrono::seconds(45); });
  ASSERT_EQ(why_not(ask(start_of("new", "uid=6"))), "");
  EXPECT_THAT(rules(), ElementsAre("new", "job-{jobid}", "default"));
  start();
  EXPECT_THAT(rules(), ElementsAre("new", "job-{jobid}", "default")) << "the journal has both";
}

TEST_F(NamedThings, AreNotLookedUpForCallersThatSeeOnlyOwnJobs) {
  lookups_.wanted = {};
  EXPECT_FALSE(who("some-host", kAlice).has_error());
  EXPECT_FALSE(who("bob", kAlice).has_error());
  EXPECT_TRUE(lookups_.wanted.empty());
  EXPECT_EQ(databases_.asked, 0);
}

TEST_F(AdministrationTest, StatsHaveACoordinatorsLimits) {
  const stage::Place place = stage_->find("a");
  const stage::Allocation allocation = {.id = place.id,
                                        .limits = {.bytes = {{500}}, .metadata_operations = 3}};
  (void)stage_->get().allocate({.epoch = {.term = 3, .sequence = 9}, .lease = kLease},
                               std::span(&allocation, 1), stage_->now());
  const StatsReply during = stats().stats_reply();
  EXPECT_TRUE(during.allocated());
  EXPECT_EQ(during.term(), 3U);
  EXPECT_EQ(during.sequence(), 9U);
  const auto is_limited = [](const VirtualPfs& each) { return each.has_allocated_rate(); };
  const auto limited = std::ranges::find_if(during.virtual_pfs(), is_limited);
  ASSERT_NE(limited, during.virtual_pfs().end());
  EXPECT_EQ(limited->name(), "job-a");
  EXPECT_EQ(limited->allocated_rate(), 500U);
  EXPECT_EQ(limited->allocated_metadata_operations(), 3U);
  EXPECT_FALSE(limited->has_allocated_operations());
}

}  // namespace
}  // namespace vpfs::control
