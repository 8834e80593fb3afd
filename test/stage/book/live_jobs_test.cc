// Jobs that are registered live.
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/config/live_words.h"
#include "stage/rules/pattern.h"
#include "test/stage/book/driver.h"

namespace vpfs::stage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

StartJob start_job(std::string id, std::vector<std::string> words = {}) {
  return {.job = {.jobid = std::move(id), .clients = {"10.0.0.0/24"}, .uids = {1001}},
          .words = std::move(words)};
}

TEST(LiveJobs, AJobIsRegisteredUntilItStops) {
  BookDriver driver;
  StartJob start = start_job("4711");
  start.job.nodes = 64;
  start.job.gids = {100, 101};
  start.job.account = "climate";
  ASSERT_EQ(driver.refusal(start), "");
  EXPECT_EQ(driver.book.state().jobs.at("4711").job, start.job);
  EXPECT_EQ(driver.replayed().state(), driver.book.state());
  ASSERT_EQ(driver.refusal(StopJob{"4711"}), "");
  EXPECT_TRUE(driver.book.state().jobs.empty());
  const auto again = driver.run(StopJob{"4711"});
  EXPECT_EQ(again.error().code, ProblemCode::not_found);
  EXPECT_EQ(again.error().text, "the job '4711' is not registered");
  EXPECT_EQ(driver.book.state().version, 0U) << "jobs are in no version";
}

TEST(LiveJobs, AJobThatIsNotStoppedEndsAtItsTimeLimit) {
  BookDriver driver;
  StartJob start = start_job("4711", {"weight=4"});
  start.until = at(3600);
  ASSERT_EQ(driver.refusal(start), "");
  EXPECT_EQ(driver.rules().front(), "job:4711 weight=4");
  EXPECT_THAT(driver.advance(3600), ElementsAre("the job '4711' has reached its time limit"));
  EXPECT_EQ(driver.rules().front(), "climate weight=2");
}

TEST(LiveJobs, ARequeuedJobKeepsItsVirtualPfs) {
  BookDriver driver;
  StartJob start = start_job("4711", {"weight=4"});
  start.until = at(3600);
  ASSERT_EQ(driver.refusal(start), "");
  (void)driver.advance(1800);
  start.job.clients = {"10.9.9.9"};
  start.until = at(5400);
  ASSERT_EQ(driver.refusal(start), "");
  EXPECT_EQ(driver.book.state().jobs.size(), 1U);
  EXPECT_EQ(driver.book.state().jobs.at("4711").job.clients, start.job.clients);
  EXPECT_EQ(driver.book.next_deadline(), at(5400));
  EXPECT_EQ(driver.rules().front(), "job:4711 weight=4");
}

TEST(LiveJobs, WordsOfAJobAreARuleForItsIdAlone) {
  const std::map<std::string, std::string> conditions = {{"4711", "jobid=4711"},
                                                         {"4711_3", "jobid=4711_3"},
                                                         {"4711[3]", R"(jobid="4711\[3\]")"},
                                                         {"a b", R"(jobid="a b")"},
                                                         {R"(x"*?\)", R"(jobid="x""\*\?\\")"}};
  for (const auto& [id, condition] : conditions) {
    BookDriver driver;
    ASSERT_EQ(driver.refusal(start_job(id, {"weight=4"})), "") << id;
    const RuleConfig rule = driver.composed().config.rules.front();
    EXPECT_EQ(rule.name, "job:" + id);
    EXPECT_EQ(rule.origin, RuleOrigin::job);
    EXPECT_EQ(rule.text.condition, condition);
    // What the quotes have is a pattern of just this id.
    std::string pattern = condition.substr(6);
    if (pattern.starts_with('"')) pattern = pattern.substr(1, pattern.size() - 2);
    if (const auto quote = pattern.find("\"\""); quote != std::string::npos)
      pattern.erase(quote, 1);
    EXPECT_TRUE(Pattern(pattern).matches(id)) << pattern;
    EXPECT_TRUE(Pattern(pattern).is_literal()) << pattern;
  }
}

TEST(LiveJobs, TheRuleOfAJobIsChangedAndStoppedLikeOthers) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_job("4711", {"weight=4"})), "");
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "job:4711", .words = {"weight=8", "for=1h"}}), "");
  EXPECT_EQ(driver.rules().front(), "job:4711 weight=8");
  EXPECT_THAT(driver.advance(3600), ElementsAre("the rule 'job:4711' has ended"));
  EXPECT_EQ(driver.book.state().jobs.size(), 1U);
  ASSERT_EQ(driver.refusal(start_job("4711", {"weight=4"})), "");
  ASSERT_EQ(driver.refusal(StopRule{"job:4711"}), "");
  EXPECT_EQ(driver.rules().front(), "climate weight=2");
  EXPECT_EQ(driver.replayed().state(), driver.book.state());
}

TEST(LiveJobs, AJobWithAMistakeIsRefused) {
  BookDriver driver;
  StartJob start = start_job("");
  EXPECT_THAT(driver.refusal(start), HasSubstr("a job id has 1 to 128 bytes"));
  start = start_job("4711");
  start.job.clients.clear();
  EXPECT_THAT(driver.refusal(start), HasSubstr("has no client"));
  start.job.clients = {"n17"};
  EXPECT_THAT(driver.refusal(start), HasSubstr("clients: 'n17'"));
  EXPECT_EQ(driver.refusal(start_job("4711", {"weight=x"})), "weight: 'x' is wrong");
  EXPECT_THAT(driver.refusal(start_job("4711", {"for=1h"})), HasSubstr("ends with the job"));
  EXPECT_THAT(driver.refusal(start_job("{x}", {"weight=1"})), HasSubstr("with braces"));
  EXPECT_THAT(driver.refusal(start_job(std::string(126, 'x'), {"weight=1"})), HasSubstr("NAME"));
  start = start_job("4711");
  for (const std::string& account : {std::string(129, 'a'), std::string("a\nb")}) {
    start.job.account = account;
    EXPECT_THAT(driver.refusal(start), HasSubstr("account: must be at most 128 bytes"));
  }
  start = start_job("4711");
  start.until = at(0);
  EXPECT_THAT(driver.refusal(start), HasSubstr("time_limit: its time would be over"));
  EXPECT_TRUE(driver.book.state().jobs.empty());
}

struct OneHost final : Names {
  std::optional<std::uint32_t> user(const std::string&) const override { return std::nullopt; }
  std::optional<std::uint32_t> group(const std::string&) const override { return std::nullopt; }
  std::vector<std::string> addresses(const std::string& host) const override {
    if (host != "n17") return {};
    return {"10.0.0.17", "fd00::17"};
  }
};

TEST(LiveJobs, NamesOfHostsBecomeTheirAddresses) {
  const OneHost names;
  BookDriver driver;
  driver.file.names = &names;
  StartJob start = start_job("4711");
  start.job.clients = {"10.1.0.1", "n17"};
  ASSERT_EQ(driver.refusal(start), "");
  EXPECT_THAT(driver.book.state().jobs.at("4711").job.clients,
              ElementsAre("10.1.0.1", "10.0.0.17", "fd00::17"));
  start.job.clients = {"n18"};
  EXPECT_THAT(driver.refusal(start), HasSubstr("'n18'"));
}

}  // namespace
}  // namespace vpfs::stage
