#include "tools/vpfsctl/site/atomic.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::ctl {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

// Proxies that obey, refuse or say nothing, for each action.
class FakeProxies {
 public:
  enum class Mood { obeys, refuses, silent };

  explicit FakeProxies(std::size_t count) : moods_(count) {}

  void set(std::size_t proxy, control::Rule::Action action, Mood mood) {
    moods_[proxy][action] = mood;
  }
  [[nodiscard]] AskSome ask() {
    return [this](const std::vector<Question>& questions) {
      std::vector<ProxyAnswer> answers;
      for (const Question& each : questions) answers.push_back(answer(each));
      return answers;
    };
  }
  std::string log;    // "START0 START1 CONFIRM0 "
  bool waits = true;  // whether changes wait for confirmation

 private:
  ProxyAnswer answer(const Question& question) {
    const auto action = question.request.rule().action();
    const std::string name = "s" + std::to_string(question.proxy);
    log += control::Rule::Action_Name(action) + std::to_string(question.proxy) + " ";
    if (action == control::Rule::START) {
      EXPECT_GT(question.request.rule().confirm_seconds(), 0U);
    }
    if (action == control::Rule::ROLLBACK) {
      EXPECT_EQ(question.request.rule().version(), 4U);
    }
    control::Envelope reply;
    switch (moods_[question.proxy][action]) {
      case Mood::silent:
        return unreachable(name, "timeout", "no answer");
      case Mood::refuses:
        reply.mutable_error()->set_text("will not");
        break;
      case Mood::obeys:
        reply.mutable_rule_reply()->set_version(5);
        if (action == control::Rule::START && waits)
          reply.mutable_rule_reply()->set_confirm_by_at(99);
        break;
    }
    return make_answer(name, reply);
  }

  std::vector<std::map<control::Rule::Action, Mood>> moods_;
};

std::vector<ProxyAnswer> start(FakeProxies& proxies, std::size_t count,
                               std::uint64_t left_to_caller = 0) {
  control::Envelope request;
  request.mutable_rule()->set_action(control::Rule::START);
  request.mutable_rule()->set_confirm_seconds(left_to_caller);
  return change_all(count, request, 30, proxies.ask());
}

TEST(Atomic, IsConfirmedWhenAllHaveIt) {
  FakeProxies proxies(2);
  const auto answers = start(proxies, 2);
  EXPECT_EQ(proxies.log, "START0 START1 CONFIRM0 CONFIRM1 ");
  EXPECT_EQ(exit_code(answers), ExitCode::done);
  EXPECT_EQ(answers[0].reply.rule_reply().confirm_by_at(), 0) << "nothing waits any more";
}

TEST(Atomic, IsRolledBackWhereItWasAppliedIfOneRefuses) {
  FakeProxies proxies(3);
  proxies.set(1, control::Rule::START, FakeProxies::Mood::refuses);
  const auto answers = start(proxies, 3);
  EXPECT_EQ(proxies.log, "START0 START1 START2 ROLLBACK0 ROLLBACK2 ");
  EXPECT_EQ(exit_code(answers), ExitCode::refused);
  EXPECT_EQ(answers[0].code, "rolled_back");
  EXPECT_THAT(answers[0].text, HasSubstr("because of s1: will not"));
  EXPECT_EQ(answers[1].text, "will not");
}

TEST(Atomic, IsRolledBackIfOneIsSilent) {
  FakeProxies proxies(2);
  proxies.set(1, control::Rule::START, FakeProxies::Mood::silent);
  const auto answers = start(proxies, 2);
  EXPECT_EQ(exit_code(answers), ExitCode::refused);
  EXPECT_EQ(answers[1].outcome, Outcome::unreachable);
  EXPECT_THAT(answers[1].text, HasSubstr("rolled back by itself within 30 s"));
}

TEST(Atomic, AProxyThatVanishesBeforeTheRollBackIsSaidToDoItByItself) {
  FakeProxies proxies(2);
  proxies.set(0, control::Rule::ROLLBACK, FakeProxies::Mood::silent);
  proxies.set(1, control::Rule::START, FakeProxies::Mood::refuses);
  const auto answers = start(proxies, 2);
  EXPECT_EQ(answers[0].code, "pending");
  EXPECT_THAT(answers[0].text, HasSubstr("by itself within 30 s"));
  EXPECT_EQ(exit_code(answers), ExitCode::partly) << "it has the change for some time";
}

TEST(Atomic, AProxyThatVanishesBeforeTheConfirmationIsAskedTwice) {
  FakeProxies proxies(2);
  proxies.set(1, control::Rule::CONFIRM, FakeProxies::Mood::silent);
  proxies.set(1, control::Rule::LIST, FakeProxies::Mood::silent);
  const auto answers = start(proxies, 2);
  EXPECT_EQ(proxies.log, "START0 START1 CONFIRM0 CONFIRM1 CONFIRM1 LIST1 ");
  EXPECT_EQ(answers[0].outcome, Outcome::done);
  EXPECT_EQ(answers[1].code, "pending");
  EXPECT_EQ(exit_code(answers), ExitCode::partly);
}

TEST(Atomic, AConfirmationWhoseAnswerWasLostIsFoundInTheListOfRules) {
  FakeProxies proxies(2);
  proxies.set(1, control::Rule::CONFIRM, FakeProxies::Mood::refuses);
  const auto answers = start(proxies, 2);
  EXPECT_EQ(proxies.log, "START0 START1 CONFIRM0 CONFIRM1 CONFIRM1 LIST1 ");
  EXPECT_EQ(exit_code(answers), ExitCode::done);
}

TEST(Atomic, WhatWaitsForNoConfirmationNeedsNone) {
  FakeProxies proxies(2);
  proxies.waits = false;
  EXPECT_EQ(exit_code(start(proxies, 2)), ExitCode::done);
  EXPECT_EQ(proxies.log, "START0 START1 ");
}

TEST(Atomic, WhatWaitsForNoConfirmationIsNotRolledBackSinceThatCouldUndoAnother) {
  FakeProxies proxies(2);
  proxies.waits = false;
  proxies.set(1, control::Rule::START, FakeProxies::Mood::refuses);
  const auto answers = start(proxies, 2);
  EXPECT_EQ(proxies.log, "START0 START1 ");
  EXPECT_EQ(answers[0].code, "kept");
  EXPECT_EQ(exit_code(answers), ExitCode::partly);
}

TEST(Atomic, NoProxyIsAskedToRollBackWhatItDoesNotHave) {
  FakeProxies proxies(2);
  proxies.set(0, control::Rule::START, FakeProxies::Mood::silent);
  proxies.set(1, control::Rule::START, FakeProxies::Mood::silent);
  EXPECT_EQ(exit_code(start(proxies, 2)), ExitCode::unreachable);
  EXPECT_EQ(proxies.log, "START0 START1 ");
}

TEST(Atomic, ATimeToConfirmInLeavesTheConfirmationToTheAdministrator) {
  FakeProxies proxies(2);
  const auto answers = start(proxies, 2, 600);
  EXPECT_EQ(proxies.log, "START0 START1 ");
  EXPECT_EQ(answers[0].reply.rule_reply().confirm_by_at(), 99);
}

TEST(Atomic, TheProxiesWaitLongerThanAllQuestionsTake) {
  EXPECT_EQ(confirm_seconds(1s), 30U);
  EXPECT_EQ(confirm_seconds(10s), 80U);
}

}  // namespace
}  // namespace vpfs::ctl
