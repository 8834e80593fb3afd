// Rules of a coordinator, which are for stages of any policy.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/book/rule_book.h"
#include "stage/config/live_words.h"
#include "stage/config/rule_text.h"

namespace vpfs::stage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SiteRulesTest : public ::testing::Test {
 protected:
  SiteRulesTest() {
    config_.source = "a stage";
    config_.shown = {Attribute::uid, Attribute::jobid, Attribute::target};
    config_.is_site = true;
  }
  std::string problem(const std::vector<std::string>& words, const std::string& name = "gold") {
    const auto parsed = parse_rule({.name = name, .condition = "jobid=a", .words = words}, config_);
    if (parsed) return "";
    return fmt::format("{}: {}", parsed.error().front().place, parsed.error().front().text);
  }
  std::string refusal(decltype(BookOperation::what) what) const {
    const auto change = RuleBook(parse_rule)
                            .prepare({.at = WallTime(std::chrono::seconds(1'800'000'000)),
                                      .who = "ops",
                                      .what = std::move(what)},
                                     config_);
    return change ? "" : fmt::format("{}: {}", change.error().place, change.error().text);
  }

  Config config_;
};

TEST_F(SiteRulesTest, TotalsAreReadAndStayInTheWords) {
  const auto parsed = parse_rule({.name = "gold",
                                  .condition = "jobid=a",
                                  .words = {"total_iops=2k", "total_rate=1GiB/s", "weight=4"}},
                                 config_);
  ASSERT_TRUE(parsed) << parsed.error().front().text;
  EXPECT_EQ(parsed->declares->total_rate, BytesPerSecond{1024 * kMiB});
  EXPECT_EQ(parsed->declares->total_operations, 2000U);
  EXPECT_EQ(parsed->declares->share.weight, 4U);
  EXPECT_THAT(parsed->rule.text.words,
              ElementsAre("weight=4", "total_rate=1GiB/s", "total_operations=2k"));
}

TEST_F(SiteRulesTest, TotalsAreCheckedAsRatesAre) {
  EXPECT_THAT(problem({"total_rate=5"}), HasSubstr("needs a unit"));
  EXPECT_THAT(problem({"total_rate=0B/s"}), HasSubstr("total_rate: "));
  EXPECT_THAT(problem({"total_operations=x"}), HasSubstr("total_operations: "));
  EXPECT_THAT(problem({"total_iops=1", "total_operations=1"}), HasSubstr("is given twice"));
  EXPECT_THAT(problem({"mode=shadow", "rate=1MiB/s", "total_rate=1MiB/s"}),
              HasSubstr("a shadow rule has limits alone"));
}

TEST_F(SiteRulesTest, AStageRefusesTotals) {
  config_.is_site = false;
  EXPECT_THAT(problem({"total_rate=1MiB/s"}), HasSubstr("needs a coordinator; `rate` counts"));
  EXPECT_THAT(problem({"total_iops=1k"}), HasSubstr("needs a coordinator; `iops` counts"));
}

TEST_F(SiteRulesTest, WordsOfEveryPolicyAreTaken) {
  EXPECT_EQ(problem({"rate=1MiB/s", "min=1MiB/s", "rank=3", "realtime"}), "");
  EXPECT_EQ(problem({"rate=1MiB/s", "latency=20ms"}), "");
  EXPECT_EQ(problem({"finish=2TiB/8h"}), "");
  EXPECT_EQ(problem({"nodes=64"}), "");
  EXPECT_EQ(problem({"class=interactive"}), "");
  EXPECT_EQ(problem({"vpfs=bulk"}), "") << "stages declare it";
  EXPECT_THAT(problem({"wieght=4"}), HasSubstr("wieght")) << "no policy knows it";
  EXPECT_THAT(problem({"nodes=0"}), HasSubstr("nodes"));
}

TEST_F(SiteRulesTest, SharesOfStagesCannotBeChangedHere) {
  EXPECT_THAT(refusal(ChangeRule{.name = "default", .words = {"weight=2"}}),
              HasSubstr("each stage has a share of its own"));
  EXPECT_THAT(refusal(ApplySet{.shares = {{.virtual_pfs = "bulk", .words = {"weight=2"}}}}),
              HasSubstr("a coordinator has rules alone"));
  EXPECT_EQ(
      refusal(ApplySet{
          .rules = {{.text = {.name = "a", .condition = "jobid=a", .words = {"vpfs=bulk"}}}}}),
      "");
}

TEST_F(SiteRulesTest, BothSpellingsOfATotalAreOneWord) {
  EXPECT_THAT(with_changes({"total_operations=1"}, {"total_iops=2"}), ElementsAre("total_iops=2"));
  EXPECT_THAT(with_changes({"total_rate=1GiB/s"}, {"total_rate=none"}), ElementsAre());
}

// A rule that sends to a virtual PFS of the stages is in force here as well.
TEST_F(SiteRulesTest, ARuleForAVirtualPfsOfTheStagesIsComposed) {
  RuleBook book(parse_rule);
  const auto change = book.prepare(
      {.at = WallTime(std::chrono::seconds(1'800'000'000)),
       .who = "ops",
       .what = StartRule{.rule = {.name = "a", .condition = "jobid=a", .words = {"vpfs=bulk"}}}},
      config_);
  ASSERT_TRUE(change) << change.error().text;
  book.commit(change->operation);
  Composer composer(parse_rule);
  const auto composed = composer.compose(config_, book.state());
  EXPECT_TRUE(composed.suspended.empty());
  ASSERT_EQ(composed.config.rules.size(), 1U);
  EXPECT_EQ(composed.config.rules[0].virtual_pfs, "bulk");
}

}  // namespace
}  // namespace vpfs::stage
