// What registrations of jobs tell the classifier, and rules that hold nothing.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stage/rules/classifier.h"

namespace vpfs::stage {
namespace {

const Address kNode = Address::parse("10.0.0.1").value();
const Address kOther = Address::parse("10.0.0.9").value();

class JobsOfRequests : public ::testing::Test {
 protected:
  JobsOfRequests() {
    EXPECT_TRUE(jobs_.add({.jobid = "42",
                           .clients = {"10.0.0.1"},
                           .uids = {},
                           .gids = {500, 501},
                           .account = "physics",
                           .nodes = 16}));
  }
  // `job`: the id on the wire.
  static Classifier::Match match(const Classifier& classifier, const Address& client,
                                 std::optional<std::string_view> job = {}) {
    std::vector<std::optional<std::string_view>> hints(classifier.hint_names().size());
    for (std::size_t i = 0; i < hints.size(); ++i) {
      if (classifier.hint_names()[i] == kJobHint) hints[i] = job;
    }
    return classifier.classify(client, {.hints = hints});
  }

  JobRegistry jobs_;
};

TEST_F(JobsOfRequests, ARegistrationTellsWhatTheWireDoesNotShow) {
  const Classifier classifier({{.any_of = {{.jobids = {"4*"}}}, .virtual_pfs = "job-{jobid}"}}, 0,
                              &jobs_);
  const Classifier::Match found = match(classifier, kNode);
  EXPECT_EQ(found.virtual_pfs, "job-42");
  EXPECT_EQ(found.rule, 0U);
  EXPECT_EQ(found.jobid, "42");
  EXPECT_EQ(found.nodes, 16U);
  EXPECT_TRUE(found.job_from_registration);
  EXPECT_EQ(match(classifier, kOther).virtual_pfs, "default");
  EXPECT_EQ(match(classifier, kOther).rule, Classifier::kNoRule);
  EXPECT_EQ(match(classifier, kOther, "43").virtual_pfs, "job-43") << "the wire shows it";
  EXPECT_EQ(match(classifier, kOther, "43").nodes, 0U);
  EXPECT_EQ(match(classifier, kNode, "43").virtual_pfs, "job-43") << "the wire goes first";
}

TEST_F(JobsOfRequests, GroupsAndAccountsComeFromRegistrations) {
  const Classifier classifier({{.any_of = {{.gids = {501}}}, .virtual_pfs = "{account}-{gid}"},
                               {.any_of = {{.accounts = {"chem*"}}}, .virtual_pfs = "chemistry"}},
                              0, &jobs_);
  EXPECT_EQ(match(classifier, kNode).virtual_pfs, "physics-500") << "a template takes the first";
  EXPECT_EQ(match(classifier, kNode, "42").virtual_pfs, "physics-500");
  EXPECT_FALSE(match(classifier, kNode, "42").job_from_registration);
  EXPECT_EQ(match(classifier, kOther, "42").virtual_pfs, "default") << "of another client";
  EXPECT_EQ(match(classifier, kOther).virtual_pfs, "default");
}

TEST_F(JobsOfRequests, AnIdThatDoesNotCountIsAsGoodAsNone) {
  const Classifier classifier({{.any_of = {{.jobids = {"*"}}}, .virtual_pfs = "job-{jobid}"}}, 0,
                              &jobs_, JobIds::registered);
  EXPECT_EQ(match(classifier, kNode, "43").virtual_pfs, "job-42");
  EXPECT_TRUE(match(classifier, kNode, "43").job_not_registered);
  EXPECT_EQ(match(classifier, kOther, "42").virtual_pfs, "default");
}

TEST_F(JobsOfRequests, AHintIsWhatTheWireShows) {
  const Classifier classifier(
      {{.any_of = {{.hints = {{"jobid", {"*"}}}}}, .virtual_pfs = "job-{jobid}"}}, 0, &jobs_);
  EXPECT_EQ(match(classifier, kNode).virtual_pfs, "default");
  EXPECT_EQ(match(classifier, kNode).jobid, "42") << "whose it is, is known all the same";
  EXPECT_EQ(match(classifier, kNode, "42").virtual_pfs, "job-42");
}

TEST_F(JobsOfRequests, AnIdThatIsNotAGoodNameIsNotPassedOn) {
  const Classifier classifier({{.any_of = {{.jobids = {"*"}}}, .virtual_pfs = "jobs"}}, 0, &jobs_);
  EXPECT_EQ(match(classifier, kOther, "a\nb").virtual_pfs, "jobs");
  EXPECT_EQ(match(classifier, kOther, "a\nb").jobid, "");
}

TEST_F(JobsOfRequests, OneAlternativeOfARuleIsEnough) {
  const Classifier classifier(
      {{.any_of = {{.kinds = {IoKind::write}, .jobids = {"42"}}, {.clients = {"10.0.0.9"}}},
        .virtual_pfs = "v"}},
      0, &jobs_);
  EXPECT_EQ(match(classifier, kNode).virtual_pfs, "default");
  EXPECT_EQ(match(classifier, kOther).virtual_pfs, "v");
  EXPECT_EQ(match(classifier, kOther).rule, 0U);
}

TEST_F(JobsOfRequests, AShadowRuleIsNotedAndTheNextOneTakesTheRequest) {
  const Classifier classifier(
      {{.mode = RuleMode::shadow, .any_of = {{.jobids = {"*"}}}, .virtual_pfs = "try-{jobid}"},
       {.mode = RuleMode::shadow, .virtual_pfs = "second"},
       {.any_of = {{.clients = {"10.0.0.0/8"}}}, .virtual_pfs = "v"},
       {.mode = RuleMode::shadow, .virtual_pfs = "behind"}},
      0, &jobs_);
  const Classifier::Match found = match(classifier, kNode);
  EXPECT_EQ(found.virtual_pfs, "v");
  EXPECT_EQ(found.rule, 2U);
  EXPECT_EQ(found.shadow_rule, 0U);
  EXPECT_EQ(found.shadow_name, "try-42");
  EXPECT_EQ(match(classifier, kOther).shadow_name, "second");
  const Classifier alone({{.any_of = {{.clients = {"10.0.0.0/8"}}}, .virtual_pfs = "v"},
                          {.mode = RuleMode::shadow, .virtual_pfs = "behind"}});
  EXPECT_EQ(match(alone, kNode).shadow_rule, Classifier::kNoRule);
}

TEST_F(JobsOfRequests, AnExemptRuleSaysSo) {
  const Classifier classifier({{.virtual_pfs = "v", .exempt = true}});
  EXPECT_TRUE(match(classifier, kNode).exempt);
  EXPECT_FALSE(match(Classifier({{.virtual_pfs = "v"}}), kNode).exempt);
}

TEST_F(JobsOfRequests, ClassifiersOfOtherJobsShareThePreparedRules) {
  const Classifier first({{.any_of = {{.jobids = {"*"}}}, .virtual_pfs = "job-{jobid}"}}, 2,
                         &jobs_);
  JobRegistry others;
  ASSERT_TRUE(others.add({.jobid = "43", .clients = {"10.0.0.9"}, .uids = {}}));
  const Classifier second(first.rules(), 2, &others, JobIds::trusted);
  EXPECT_EQ(first.rules(), second.rules());
  EXPECT_EQ(match(first, kNode).virtual_pfs, "job-42");
  EXPECT_EQ(match(second, kNode).virtual_pfs, "default");
  EXPECT_EQ(match(second, kOther).virtual_pfs, "job-43");
}

}  // namespace
}  // namespace vpfs::stage
