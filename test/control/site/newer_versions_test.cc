// A coordinator and an aggregator of this version pass on what programs of a later one say.

#include <gmock/gmock.h>

#include "control/site/site_forward.h"
#include "test/control/coordinator/stages_of_test.h"
#include "test/support/control/unknown_field.h"
#include "test/support/manual_clock.h"

namespace vpfs::coordinator {
namespace {

using ::testing::HasSubstr;

class NewerVersions : public ::testing::Test {
 protected:
  NewerVersions() { stages_.use(requests_); }

  void add(const std::string& name, bool is_aggregator = false, bool takes_users = true) {
    StageHello hello;
    hello.name = name;
    hello.takes_site = true;
    hello.takes_users = takes_users;
    hello.is_aggregator = is_aggregator;
    stages_.joined(requests_.add(hello));
  }
  // As an aggregator is asked by its parent, and a coordinator by an administrator that may change
  // everything.
  void ask(const control::Forward& forward) {
    forward_.forward(forward, [this](control::Envelope reply) { reply_ = std::move(reply); });
  }
  static control::Forward stats() {
    control::Forward forward;
    forward.mutable_request()->mutable_stats();
    test::add_unknown(forward, "of forward");
    test::add_unknown(*forward.mutable_request(), "of envelope");
    test::add_unknown(*forward.mutable_request()->mutable_stats(), "of stats");
    return forward;
  }
  static control::Envelope answer() {
    control::Envelope envelope;
    test::add_unknown(envelope, "of answer");
    test::add_unknown(*envelope.mutable_stats_reply(), "of reply");
    test::add_unknown(*envelope.mutable_stats_reply()->add_virtual_pfs(), "of row");
    return envelope;
  }
  static void expect_whole(const control::Envelope& answer) {
    EXPECT_EQ(test::unknown_of(answer), "of answer");
    EXPECT_EQ(test::unknown_of(answer.stats_reply()), "of reply");
    ASSERT_EQ(answer.stats_reply().virtual_pfs_size(), 1);
    EXPECT_EQ(test::unknown_of(answer.stats_reply().virtual_pfs(0)), "of row");
  }

  asio::io_context context_;
  test::ManualClock clock_{TimePoint(std::chrono::seconds(100))};
  StagesOfTest requests_;
  SiteStages stages_{context_, clock_};
  SiteForward forward_{stages_, requests_};
  control::Envelope reply_;
};

TEST_F(NewerVersions, WhatAStageIsAskedAndAnswersIsPassedOnWhole) {
  add("ds1");
  ask(stats());
  const control::Envelope& asked = requests_.open("ds1")->request;
  EXPECT_EQ(test::unknown_of(asked), "of envelope");
  EXPECT_EQ(test::unknown_of(asked.stats()), "of stats");
  requests_.answer("ds1", answer());
  ASSERT_EQ(reply_.forward_reply().answers_size(), 1);
  expect_whole(reply_.forward_reply().answers(0).answer());
}

TEST_F(NewerVersions, WhatAnAggregatorIsAskedAndAnswersIsPassedOnWhole) {
  add("agg", true);
  control::Forward of_all = stats();
  control::Forward of_the_aggregator = stats();
  of_the_aggregator.add_stages("agg");
  control::Forward of_a_stage_below = stats();
  of_a_stage_below.add_stages("far");
  for (const auto& [forward, stages] :
       {std::pair(of_all, 0), {of_the_aggregator, 0}, {of_a_stage_below, 1}}) {
    ask(forward);
    const control::Forward& asked = requests_.open("agg")->request.forward();
    EXPECT_EQ(asked.stages_size(), stages);
    EXPECT_EQ(test::unknown_of(asked), "of forward");
    EXPECT_EQ(test::unknown_of(asked.request()), "of envelope");
    EXPECT_EQ(test::unknown_of(asked.request().stats()), "of stats");
    control::Envelope reply;
    auto* const of_far = reply.mutable_forward_reply()->add_answers();
    of_far->set_stage("far");
    test::add_unknown(*of_far, "of its place");
    *of_far->mutable_answer() = answer();
    requests_.answer("agg", reply);
    ASSERT_EQ(reply_.forward_reply().answers_size(), 1);
    EXPECT_EQ(test::unknown_of(reply_.forward_reply().answers(0)), "of its place");
    expect_whole(reply_.forward_reply().answers(0).answer());
  }
}

TEST_F(NewerVersions, TheRulesAndJobsOfASiteGoThroughAnAggregatorWhole) {
  add("ds1");
  control::Site site;
  test::add_unknown(site, "of site");
  test::add_unknown(*site.add_rules(), "of rule");
  test::add_unknown(*site.add_jobs(), "of job");
  EXPECT_TRUE(stages_.set(site));
  const control::Site& sent = requests_.open("ds1")->request.site();
  EXPECT_EQ(test::unknown_of(sent), "of site");
  EXPECT_EQ(test::unknown_of(sent.rules(0)), "of rule");
  EXPECT_EQ(test::unknown_of(sent.jobs(0)), "of job");
  requests_.acknowledge("ds1");
  test::add_unknown(*site.mutable_rules(0), "of another rule");
  EXPECT_TRUE(stages_.set(site)) << "a stage may know the field that changed";
}

TEST_F(NewerVersions, ARequestThatThisVersionDoesNotKnowIsRefusedByItsNumber) {
  add("ds1");
  control::Forward forward;
  test::add_unknown(*forward.mutable_request());
  ask(forward);
  EXPECT_EQ(reply_.error().code(), control::Error::UNSUPPORTED);
  EXPECT_THAT(reply_.error().text(), HasSubstr("does not know the message with the number 1000"));
  EXPECT_EQ(requests_.asked.size(), 0U);
}

// It would pass the request on to stages that show them all.
TEST_F(NewerVersions, AnAggregatorThatDoesNotKnowUsersIsNotAskedForOne) {
  add("agg", true, false);
  control::Forward forward = stats();
  forward.mutable_request()->set_as_uid(1001);
  ask(forward);
  EXPECT_EQ(requests_.times_asked("agg"), 0U);
  ASSERT_EQ(reply_.forward_reply().answers_size(), 1);
  EXPECT_THAT(reply_.forward_reply().answers(0).answer().error().text(),
              HasSubstr("does not answer users"));
}

}  // namespace
}  // namespace vpfs::coordinator
