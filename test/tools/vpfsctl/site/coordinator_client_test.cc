#include "tools/vpfsctl/site/coordinator_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/vpfsctl/coordinator_status.h"
#include "tools/vpfsctl/ctl_settings.h"

namespace vpfs::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ProxyAnswer coordinator_says(const control::ForwardReply& reply) {
  control::Envelope envelope;
  *envelope.mutable_forward_reply() = reply;
  return make_answer("main", std::move(envelope));
}

void add_error(control::ForwardReply& reply, const char* stage, control::Error::Code code,
               const char* place, const char* text) {
  auto& answer = *reply.add_answers();
  answer.set_stage(stage);
  control::Error& error = *answer.mutable_answer()->mutable_error();
  error.set_code(code);
  error.set_place(place);
  error.set_text(text);
}

TEST(CoordinatorClient, AnswersOfStagesAreAsThoseOfProxies) {
  control::ForwardReply reply;
  auto& good = *reply.add_answers();
  good.set_stage("ds1");
  good.mutable_answer()->mutable_ack()->set_text("did it");
  add_error(reply, "ds2", control::Error::UNAVAILABLE, "stage", "is not connected");
  add_error(reply, "ds3", control::Error::UNAVAILABLE, "", "is draining");
  add_error(reply, "ds4", control::Error::NOT_FOUND, "stages", "there is no stage");
  const std::vector<ProxyAnswer> answers = answers_of_stages(coordinator_says(reply));
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0].name, "ds1");
  EXPECT_EQ(answers[0].outcome, Outcome::done);
  EXPECT_EQ(answers[0].reply.ack().text(), "did it");
  EXPECT_EQ(answers[1].outcome, Outcome::unreachable);
  EXPECT_EQ(answers[1].text, "is not connected");
  EXPECT_EQ(answers[2].outcome, Outcome::refused) << "the stage says so itself";
  EXPECT_EQ(answers[3].outcome, Outcome::refused);
  EXPECT_EQ(exit_code(answers), ExitCode::partly);
}

TEST(CoordinatorClient, WithoutStagesItsOwnAnswerIsTheOnlyOne) {
  EXPECT_EQ(exit_code(answers_of_stages(coordinator_says({}))), ExitCode::unreachable);
  const std::vector<ProxyAnswer> lost =
      answers_of_stages(unreachable("main", "unreachable", "is down"));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].text, "is down");
}

TEST(CoordinatorClient, WhatItCannotBeAskedIsRefusedWithASentence) {
  CtlSettings settings;
  settings.command.verb = Verb::rule_start;
  EXPECT_TRUE(check_for_coordinator(settings));
  settings.stages = {"ds1"};
  EXPECT_THAT(check_for_coordinator(settings).error().message,
              HasSubstr("--stage: rules and jobs"));
  settings.command.verb = Verb::rule_list;
  EXPECT_TRUE(check_for_coordinator(settings)) << "looking at one stage's is fine";
  settings.stages.clear();
  settings.command.atomic = true;
  EXPECT_THAT(check_for_coordinator(settings).error().message, HasSubstr("--atomic"));
  settings.command.atomic = false;
  settings.targets.all = true;
  EXPECT_THAT(check_for_coordinator(settings).error().message, HasSubstr("--all"));
}

constexpr const char* kStatus = R"({
  "name": "main", "started_at": 0, "policy": "psfa", "policy_problem": "", "term": 3,
  "sequence": 77, "capacity": {"bytes": 1048576, "operations": 50, "metadata_operations": 0},
  "in_force": {"bytes": 0, "operations": 0, "metadata_operations": 0},
  "cycles": {"period_us": 50000, "p50_us": 1200, "p99_us": 3000, "max_us": 5000,
             "late_answers": 4},
  "rules": {"live": 2, "version": 5, "not_in_force": 1},
  "stages": [
    {"name": "ds1", "address": "/run/ds1", "connected": true, "late": false, "silent": false,
     "late_cycles": 0, "jobs": 2, "caps": {"bytes": 2048}, "lies": 0, "problem": "",
     "rules": {"state": "in force", "problem": "", "warnings": ["rule x: no class"]}},
    {"name": "ds2", "connected": true, "late": true, "late_cycles": 9, "problem": "it is late",
     "rules": {"state": "not taken", "problem": "the disk is full"}},
    {"name": "ds3", "connected": false, "problem": "refused \u001b[2J"}],
  "jobs": [{"name": "gold", "weight": 4, "stages": 2, "most": {"bytes": 1048576},
            "granted": {"operations": 7}},
           {"name": "thin", "total": {"cost": 30, "entitled": 40, "reached": false,
            "why": "keeps no queue at ds1", "would_help": "more requests", "at": ["ds1"]}},
           {"name": "wide", "total": {"cost": 50, "entitled": 40, "reached": true}}]})";

TEST(CoordinatorStatus, ShowsTheCoordinatorThenEachStageAndWhyItWaits) {
  const std::string text = coordinator_status_text(kStatus);
  EXPECT_THAT(text, HasSubstr("coordinator  main\n"));
  EXPECT_THAT(text, HasSubstr("term         3, cycle 77\n"));
  EXPECT_THAT(text, HasSubstr("every 50 ms: p50 1.2 ms, p99 3 ms, longest 5 ms; 4 late answers"));
  EXPECT_THAT(text, HasSubstr("capacity     1 MiB/s, 50 iops\n"));
  EXPECT_THAT(text, HasSubstr("rules        2 live, version 5, 1 NOT IN FORCE\n"));
  EXPECT_THAT(text, HasSubstr("stages       2 connected, 1 LATE, 1 ABSENT\n"));
  EXPECT_THAT(text, HasSubstr("rule x: no class"));
  EXPECT_THAT(text, HasSubstr("it is late; rules: the disk is full"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("gold"));
  EXPECT_THAT(text, HasSubstr("7 iops"));
  EXPECT_LT(text.find("coordinator"), text.find("ds1"));
  EXPECT_THAT(text, HasSubstr("75  keeps no queue at ds1; would help: more requests\n"));
  EXPECT_THAT(text, HasSubstr("125  reached\n"));
}

TEST(CoordinatorStatus, AnAggregatorsParentIsShown) {
  const auto text = [](const char* parent) {
    return coordinator_status_text(fmt::format(R"({{"stages": [], "parent": {}}})", parent));
  };
  EXPECT_THAT(text(R"({"address": "a:1", "connected": true, "leads": true, "term": 3,
                       "sequence": 41})"),
              HasSubstr("parent       a:1 leads: term 3, cycle 41\n"));
  EXPECT_THAT(text(R"({"address": "a:1", "connected": true, "leads": false})"),
              HasSubstr("a:1 is connected, and does not lead\n"));
  EXPECT_THAT(text(R"({"address": "a:1", "connected": false, "leads": true, "problem": "gone"})"),
              HasSubstr("a:1 NOT CONNECTED: gone; its lease holds\n"));
  EXPECT_THAT(coordinator_status_text(R"({"stages": []})"), Not(HasSubstr("parent")));
}

TEST(CoordinatorStatus, StagesThatAreNotConnectedCountAsNotReached) {
  const std::vector<ProxyAnswer> missing = missing_stages(kStatus);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].name, "ds3");
}

TEST(CoordinatorStatus, AnAnswerThatIsNotACoordinatorsStatusIsNamed) {
  for (const char* text : {"", "[]", "{}", "{\"pid\": 1}", "nonsense"}) {
    EXPECT_EQ(coordinator_status_text(text), "this is not a coordinator\n") << text;
  }
  EXPECT_THAT(coordinator_status_text(R"({"stages": [7, null, {"name": 5}], "cycles": "x"})"),
              HasSubstr("STAGE"));
}

}  // namespace
}  // namespace vpfs::ctl
