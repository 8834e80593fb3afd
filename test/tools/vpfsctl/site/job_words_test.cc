#include "tools/vpfsctl/site/job_words.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Command job_with(std::vector<std::string> wishes, std::vector<std::string> words = {}) {
  return {.verb = Verb::job_start,
          .name = "7",
          .words = std::move(words),
          .nodes = 1,
          .users = {"1001"},
          .clients = "10.0.0.1",
          .wishes = std::move(wishes),
          .bounds = "weight=1..8 rate=..500MiB/s deadline=5ms.."};
}

control::Envelope request_of_job(const Command& command) {
  const auto request = to_request(command, {}, false);
  EXPECT_TRUE(request) << (request ? "" : request.error().message);
  return request.value_or(control::Envelope());
}

TEST(JobWords, WishesWithinTheBoundsAreWordsOfTheRule) {
  const Command command = job_with({"weight=4", "deadline=20ms"});
  EXPECT_THAT(job_words(command).warnings, IsEmpty());
  EXPECT_THAT(request_of_job(command).job().words(), ElementsAre("weight=4", "latency=20ms"));
}

TEST(JobWords, AWishReplacesTheWordOfTheSite) {
  const Command command = job_with({"weight=4"}, {"weight=2", "class=batch"});
  EXPECT_THAT(job_words(command).words, ElementsAre("weight=4", "class=batch"));
}

TEST(JobWords, AWishBeyondTheBoundsLeavesTheWordOfTheSite) {
  const JobWords made = job_words(job_with({"weight=9", "rate=5MiB/s"}, {"weight=2"}));
  EXPECT_THAT(made.words, ElementsAre("weight=2", "rate=5MiB/s"));
  EXPECT_THAT(made.warnings, ElementsAre(HasSubstr("--wish weight=9: \"9\" is out of bounds")));
}

TEST(JobWords, WhatIsNotAWishIsLeftOutWithAWarning) {
  for (const std::string wish : {"class=best", "weight", "=4", "", "min=5MiB/s", "weight=4\n9"}) {
    const JobWords made = job_words(job_with({wish}));
    EXPECT_THAT(made.words, IsEmpty()) << wish;
    ASSERT_EQ(made.warnings.size(), 1U) << wish;
    EXPECT_EQ(made.warnings[0].find('\n'), std::string::npos) << wish;
  }
}

TEST(JobWords, AnAccountThatStagesWouldRefuseIsLeftOut) {
  Command command = job_with({});
  for (const std::string& account :
       {std::string(129, 'a'), std::string("a\nb"), std::string("é")}) {
    command.account = account;
    EXPECT_EQ(request_of_job(command).job().account(), "");
    EXPECT_THAT(job_words(command).warnings, ElementsAre(HasSubstr("--account ")));
  }
  command.account = std::string(128, 'a');
  EXPECT_EQ(request_of_job(command).job().account(), command.account);
  EXPECT_THAT(job_words(command).warnings, IsEmpty());
}

TEST(JobWords, MistypedBoundsAllowNoWishAndTheJobIsRegistered) {
  Command command = job_with({"weight=4"}, {"class=batch"});
  command.bounds = "weight=1-8";
  EXPECT_THAT(job_words(command).warnings,
              ElementsAre("--bounds: weight: \"1-8\" is not a range: expected LEAST..MOST, such as "
                          "..4; wishes are left out"));
  EXPECT_THAT(request_of_job(command).job().words(), ElementsAre("class=batch"));
}

TEST(JobWords, WithoutWishesBoundsAreNotLookedAt) {
  Command command = job_with({});
  command.bounds = "weight=1-8";
  EXPECT_THAT(job_words(command).warnings, IsEmpty());
}

// Answers like a stage that does not know some words.
struct Stage {
  std::vector<std::vector<std::string>> asked;
  std::string unknown;
  std::vector<std::string> warnings;

  std::vector<ProxyAnswer> register_job(const Command& command) {
    const auto answer = [this](const control::Envelope& request) {
      asked.emplace_back(request.job().words().begin(), request.job().words().end());
      ProxyAnswer one = {.name = "s0", .outcome = Outcome::done};
      for (const std::string& word : asked.back()) {
        if (word == unknown) one.outcome = Outcome::refused;
      }
      one.text = one.outcome == Outcome::refused ? "the policy does not know it" : "";
      return std::vector{one};
    };
    return ask_with_wishes(command, request_of_job(command), answer,
                           [this](const std::string& text) { warnings.push_back(text); });
  }
};

TEST(JobWords, AStageThatRefusesTheWishesIsAskedWithoutThem) {
  Stage stage = {.unknown = "rate=5MiB/s"};
  const auto answers = stage.register_job(job_with({"rate=5MiB/s"}, {"weight=2"}));
  EXPECT_THAT(stage.asked,
              ElementsAre(ElementsAre("weight=2", "rate=5MiB/s"), ElementsAre("weight=2")));
  EXPECT_EQ(answers[0].outcome, Outcome::done);
  EXPECT_THAT(stage.warnings, ElementsAre(HasSubstr("s0 refuses weight=2 rate=5MiB/s: the policy "
                                                    "does not know it")));
}

TEST(JobWords, AJobWithoutWishesIsAskedAboutOnce) {
  Stage stage = {.unknown = "weight=2"};
  const auto answers = stage.register_job(job_with({}, {"weight=2"}));
  EXPECT_EQ(stage.asked.size(), 1U);
  EXPECT_EQ(answers[0].outcome, Outcome::refused);
  EXPECT_THAT(stage.warnings, IsEmpty());
}

TEST(JobWords, WishesThatAreTakenAreAskedAboutOnce) {
  Stage stage;
  EXPECT_EQ(stage.register_job(job_with({"weight=4"}))[0].outcome, Outcome::done);
  EXPECT_EQ(stage.asked.size(), 1U);
}

}  // namespace
}  // namespace vpfs::ctl
