#include "control/site/site_forward.h"

#include <gmock/gmock.h>

#include "test/control/coordinator/stages_of_test.h"
#include "test/support/manual_clock.h"

namespace vpfs::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const control::Caller kChief = {
    .name = "ops", .from = "unix", .rights = control::Rights::change, .uid = 0};
const control::Caller kAlice = {
    .name = "alice", .from = "unix", .rights = control::Rights::own, .uid = 1001};

control::Envelope stats_request() {
  control::Envelope request;
  request.mutable_stats();
  return request;
}

control::Envelope stats_of(const std::string& name) {
  control::Envelope reply;
  reply.mutable_stats_reply()->set_name(name);
  return reply;
}

class SiteForwardTest : public ::testing::Test {
 protected:
  SiteForwardTest() {
    stages_.use(requests_);
    for (const char* name : {"ds2", "ds1"}) stages_.joined(requests_.add(name));
    requests_.missing = {{.name = "ds3", .address = "/run/ds3", .problem = "there is none"}};
  }
  void ask(const std::vector<std::string>& names,
           const control::Envelope& request = stats_request(),
           const control::Caller& caller = kChief) {
    control::Forward forward;
    forward.mutable_stages()->Add(names.begin(), names.end());
    *forward.mutable_request() = request;
    replies_.emplace_back();
    forward_.forward(forward, caller, [this, at = replies_.size() - 1](control::Envelope reply) {
      replies_[at] = std::move(reply);
    });
  }
  // "ds1 stats ds1", "ds3 stage: is not connected", of the last request.
  std::vector<std::string> answers() {
    if (replies_.back().has_error()) return {"! " + replies_.back().error().text()};
    std::vector<std::string> lines;
    for (const auto& each : replies_.back().forward_reply().answers()) {
      const control::Error& error = each.answer().error();
      lines.push_back(each.stage() + " " +
                      (each.answer().has_error() ? error.place() + ": " + error.text()
                                                 : "stats " + each.answer().stats_reply().name()));
    }
    return lines;
  }
  void add_aggregator(const std::string& name) {
    StageHello hello;
    hello.name = name;
    hello.takes_users = hello.is_aggregator = true;
    stages_.joined(requests_.add(hello));
  }

  asio::io_context context_;
  test::ManualClock clock_{TimePoint(std::chrono::seconds(100))};
  StagesOfTest requests_;
  SiteStages stages_{context_, clock_};
  SiteForward forward_{stages_, requests_};
  std::vector<control::Envelope> replies_;
};

TEST_F(SiteForwardTest, AllStagesAnswerInTheOrderOfTheirNames) {
  ask({});
  requests_.answer("ds2", stats_of("ds2"));
  EXPECT_FALSE(replies_.back().has_forward_reply()) << "ds1 has not answered";
  requests_.answer("ds1", stats_of("ds1"));
  EXPECT_THAT(answers(), ElementsAre("ds1 stats ds1", "ds2 stats ds2",
                                     "ds3 stage: is not connected: there is none"));
}

TEST_F(SiteForwardTest, OnlyNamedStagesAreAsked) {
  ask({"ds2", "ds3", "lost"});
  EXPECT_EQ(requests_.times_asked("ds1"), 0U);
  requests_.answer("ds2", stats_of("ds2"));
  EXPECT_THAT(answers(), ElementsAre("ds2 stats ds2", "ds3 stage: is not connected: there is none",
                                     "lost stages: there is no stage \"lost\""));
}

TEST_F(SiteForwardTest, AStageWhoseProcessIsAnotherOneNowIsAskedAgainOnce) {
  ask({"ds1"});
  const auto refuse = [this] {
    requests_.refuse("ds1", control::Error::UNAVAILABLE, control::kTakenOver, "ask again");
  };
  refuse();
  EXPECT_FALSE(replies_.back().has_forward_reply());
  requests_.waiting.at("ds1")();
  requests_.answer("ds1", stats_of("ds1"));
  EXPECT_THAT(answers(), ElementsAre("ds1 stats ds1"));

  ask({"ds1"});
  refuse();
  requests_.waiting.at("ds1")();
  refuse();
  EXPECT_THAT(answers(), ElementsAre("ds1 upgrade: ask again"));
}

TEST_F(SiteForwardTest, AQuestionThatWasLostWithTheConnectionIsAskedAgainIfItChangesNothing) {
  const auto lose = [this] {
    requests_.gone = {"ds1"};
    requests_.refuse("ds1", control::Error::UNAVAILABLE, StageRequests::kNotReached,
                     "it closed the connection");
  };
  ask({"ds1"});
  lose();
  EXPECT_FALSE(replies_.back().has_forward_reply());
  requests_.waiting.at("ds1")();
  requests_.answer("ds1", stats_of("ds1"));
  EXPECT_THAT(answers(), ElementsAre("ds1 stats ds1"));

  control::Envelope change;
  change.mutable_reload();
  requests_.gone.clear();
  ask({"ds1"}, change);
  lose();
  EXPECT_THAT(answers(), ElementsAre("ds1 stage: it closed the connection"));
}

TEST_F(SiteForwardTest, AStageThatHasJustLeftIsWaitedFor) {
  requests_.gone = {"ds3", "ds4"};
  ask({"ds3", "ds4"});
  EXPECT_FALSE(replies_.back().has_forward_reply());
  stages_.joined(requests_.add("ds4"));
  requests_.waiting.at("ds4")();
  requests_.answer("ds4", stats_of("ds4"));
  EXPECT_FALSE(replies_.back().has_forward_reply());
  requests_.waiting.at("ds3")();
  EXPECT_THAT(answers(),
              ElementsAre("ds3 stage: is not connected: there is none", "ds4 stats ds4"));
}

TEST_F(SiteForwardTest, OneOfNoConfigurationThatDoesNotComeBackIsMissedIfItWasNamed) {
  requests_.gone = {"ds5", "ds1"};  // ds1 is there again
  ask({"ds5"});
  requests_.waiting.at("ds5")();
  EXPECT_THAT(answers(), ElementsAre("ds5 stage: has left"));
  ask({});
  requests_.waiting.at("ds5")();
  requests_.answer("ds1", stats_of("ds1"));
  requests_.answer("ds2", stats_of("ds2"));
  EXPECT_THAT(answers(), ElementsAre("ds1 stats ds1", "ds2 stats ds2",
                                     "ds3 stage: is not connected: there is none"));
}

TEST_F(SiteForwardTest, ASilentStageHasAnErrorInItsPlace) {
  ask({"ds1", "ds2"});
  requests_.answer("ds1", stats_of("ds1"));
  requests_.refuse("ds2", control::Error::UNAVAILABLE, StageRequests::kNotReached,
                   "it did not answer in time");
  EXPECT_THAT(answers(), ElementsAre("ds1 stats ds1", "ds2 stage: it did not answer in time"));
}

TEST_F(SiteForwardTest, WhatIsTheSitesOwnIsRefused) {
  for (const control::Rule::Action action :
       {control::Rule::START, control::Rule::APPLY, control::Rule::CONFIRM}) {
    control::Envelope rule;
    rule.mutable_rule()->set_action(action);
    ask({}, rule);
    EXPECT_THAT(answers(), ElementsAre(HasSubstr("rules are the site's")));
  }
  control::Envelope job;
  job.mutable_job()->set_action(control::Job::START);
  ask({}, job);
  EXPECT_THAT(answers(), ElementsAre(HasSubstr("jobs are the site's")));
  control::Envelope nested;
  *nested.mutable_forward()->mutable_request() = stats_request();
  ask({}, nested);
  EXPECT_THAT(answers(), ElementsAre("! forward cannot be forwarded"));
  for (const auto set : {+[](control::Envelope& to) { to.mutable_cycle(); },
                         +[](control::Envelope& to) { to.mutable_site(); },
                         +[](control::Envelope& to) { to.mutable_watch(); }}) {
    control::Envelope request;
    set(request);
    ask({}, request);
    EXPECT_TRUE(replies_.back().has_error());
  }
  ask({}, control::Envelope());
  EXPECT_TRUE(replies_.back().has_error());
  EXPECT_EQ(requests_.asked.size(), 0U);
}

TEST_F(SiteForwardTest, AUserAsksUnderTheOwnUidAndOnlyStagesThatKnowThat) {
  StageHello old;
  old.name = "ds0";
  stages_.joined(requests_.add(old));
  control::Envelope request = stats_request();
  request.set_as_uid(0);
  ask({}, request, kAlice);
  EXPECT_EQ(requests_.open("ds1")->request.as_uid(), 1001U)
      << "not the user that the request claims";
  EXPECT_EQ(requests_.times_asked("ds0"), 0U);
  requests_.answer("ds1", stats_of("ds1"));
  requests_.answer("ds2", stats_of("ds2"));
  EXPECT_THAT(answers().front(), HasSubstr("ds0 : does not answer users"));
}

TEST_F(SiteForwardTest, OnlyACallerThatMayChangeEverythingAsksAsAnotherUser) {
  control::Envelope request = stats_request();
  request.set_as_uid(1001);
  ask({}, request, {.name = "r", .from = "unix", .rights = control::Rights::read, .uid = 5});
  EXPECT_EQ(replies_.back().error().code(), control::Error::NOT_PERMITTED);
  ask({}, request);
  EXPECT_EQ(requests_.open("ds1")->request.as_uid(), 1001U);
  ask({}, stats_request(), {.name = "CN=x", .from = "10.0.0.1"});
  EXPECT_EQ(replies_.back().error().code(), control::Error::NOT_PERMITTED) << "without a uid";
}

TEST_F(SiteForwardTest, SoManyAreUnderWayAtOnceAndUsersLeaveSomeToOthers) {
  for (int i = 0; i < 4; ++i) ask({"ds1"}, stats_request(), kAlice);
  EXPECT_EQ(requests_.times_asked("ds1"), 4U);
  ask({"ds1"}, stats_request(), kAlice);
  EXPECT_THAT(answers(), ElementsAre(HasSubstr("are under way already")));
  for (int i = 0; i < 4; ++i) ask({"ds1"});
  EXPECT_EQ(requests_.times_asked("ds1"), 8U);
  ask({"ds1"});
  EXPECT_THAT(answers(), ElementsAre("! 8 such requests are under way already"));
  requests_.answer("ds1", stats_of("ds1"));
  ask({"ds1"});
  EXPECT_EQ(requests_.times_asked("ds1"), 9U);
}

TEST_F(SiteForwardTest, AnswersThatAreTooLongTogetherAreLeftOut) {
  SiteForward::Limits limits;
  limits.most_bytes = 3'000;
  SiteForward small(stages_, requests_, limits);
  control::Forward forward;
  *forward.mutable_request() = stats_request();
  replies_.emplace_back();
  small.forward(forward, kChief, [&](control::Envelope reply) { replies_.back() = reply; });
  requests_.answer("ds1", stats_of(std::string(2'000, 'x')));
  requests_.answer("ds2", stats_of(std::string(2'000, 'x')));
  EXPECT_THAT(answers()[0], HasSubstr("ds1 stats xxx"));
  EXPECT_THAT(answers()[1], HasSubstr("ask fewer at once"));
}

TEST_F(SiteForwardTest, AnAggregatorAnswersWithItsStages) {
  add_aggregator("agg");
  ask({"ds1", "far", "lost"});
  EXPECT_THAT(requests_.open("agg")->request.forward().stages(), ElementsAre("far", "lost"));
  EXPECT_TRUE(requests_.open("agg")->request.forward().request().has_stats());
  requests_.answer("ds1", stats_of("ds1"));
  control::Envelope reply;
  auto* answer = reply.mutable_forward_reply()->add_answers();
  answer->set_stage("far");
  *answer->mutable_answer() = stats_of("far");
  answer = reply.mutable_forward_reply()->add_answers();
  answer->set_stage("lost");
  *answer->mutable_answer()->mutable_error() =
      control::make_error(control::Error::NOT_FOUND, "stages", "there is no stage \"lost\"");
  requests_.answer("agg", reply);
  EXPECT_THAT(answers(), ElementsAre("ds1 stats ds1", "far stats far",
                                     "lost stages: there is no stage \"lost\""));
}

TEST_F(SiteForwardTest, AnAggregatorIsAskedForAllItsStagesIfAllOrItselfAreMeant) {
  add_aggregator("agg");
  ask({"agg"});
  EXPECT_EQ(requests_.open("agg")->request.forward().stages_size(), 0);
  requests_.answer("agg", control::Envelope());
  ask({});
  EXPECT_EQ(requests_.open("agg")->request.forward().stages_size(), 0);
  EXPECT_TRUE(requests_.open("agg")->request.forward().request().has_stats());
  EXPECT_GT(requests_.open("agg")->patience, requests_.open("ds1")->patience);
}

TEST_F(SiteForwardTest, AnAggregatorThatDoesNotAnswerIsNamed) {
  add_aggregator("agg");
  ask({"agg"});
  requests_.refuse("agg", control::Error::UNAVAILABLE, StageRequests::kNotReached,
                   "it did not answer in time");
  EXPECT_THAT(answers(), ElementsAre("agg stage: it did not answer in time"));
}

}  // namespace
}  // namespace vpfs::coordinator
