#include "tools/vpfsctl/site/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/config/rule_words.h"

namespace vpfs::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Words, AConditionIsOneArgument) {
  const auto split = split_condition({"jobid={dd.* cp.*}&uid={1001}", "rate=500MiB/s", "realtime"});
  ASSERT_TRUE(split);
  EXPECT_EQ(split->condition, "jobid={dd.* cp.*}&uid={1001}");
  EXPECT_THAT(split->words, ElementsAre("rate=500MiB/s", "realtime"));
}

TEST(Words, AConditionThatAShellHasSplitIsPutTogether) {
  const auto split =
      split_condition({"jobid={dd.*", "cp.*}", "&", "uid={1", "2},", "op=read", "weight=4"});
  ASSERT_TRUE(split);
  EXPECT_EQ(split->condition, "jobid={dd.* cp.*} & uid={1 2}, op=read");
  EXPECT_THAT(split->words, ElementsAre("weight=4"));
}

TEST(Words, AMissingConditionIsSaidWithAnExample) {
  EXPECT_THAT(split_condition({}).error().message, HasSubstr("jobid={dd.*}"));
  EXPECT_THAT(split_condition({"rate=5MiB/s"}).error().message,
              HasSubstr("missing before \"rate=5MiB/s\""));
  EXPECT_THAT(split_condition({"realtime"}).error().message, HasSubstr("missing before"));
  EXPECT_THAT(split_condition({"nodes=4"}).error().message, HasSubstr("missing before"));
  for (const stage::RuleWord& word : stage::rule_words()) {
    for (const std::string& key : {std::string(word.key), std::string(word.other)}) {
      if (key.empty()) continue;
      EXPECT_FALSE(split_condition({key + (word.is_flag() ? "" : "=1")})) << key;
    }
  }
  EXPECT_TRUE(split_condition({"node={1}"})) << "the condition, not the word nodes";
}

TEST(Words, ABraceThatIsNotClosedIsAnError) {
  EXPECT_THAT(split_condition({"jobid={a", "rate=1MiB/s"}).error().message, HasSubstr("quotes"));
}

TEST(Words, ClientsAreSplitOutsideBrackets) {
  EXPECT_THAT(split_clients("n[1-4,9],n7,rack[1-2]n[01-16]").value(),
              ElementsAre("n[1-4,9]", "n7", "rack[1-2]n[01-16]"));
  EXPECT_THAT(split_clients("10.0.0.0/24").value(), ElementsAre("10.0.0.0/24"));
}

TEST(Words, AListOfClientsWithAnEmptyPlaceOrAnOpenBracketIsAnError) {
  for (const char* list : {"", "a,,b", "a,", "n[1-4", "n1-4]", "n[[1]"}) {
    EXPECT_FALSE(split_clients(list)) << list;
  }
}

TEST(Words, TimeLimitsAreReadAsWeAndAsSlurmWriteThem) {
  const std::vector<std::pair<const char*, std::uint64_t>> cases = {
      {"8h", 28800},          {"90 min", 5400}, {"30:00", 1800},
      {"08:00:00", 28800},    {"1-12", 129600}, {"1-12:30", 131400},
      {"2-00:00:01", 172801}, {"UNLIMITED", 0}, {"1500ms", 2}};
  for (const auto& [text, seconds] : cases) {
    const auto limit = parse_time_limit(text);
    ASSERT_TRUE(limit) << text;
    EXPECT_EQ(*limit, seconds) << text;
  }
  for (const char* text : {"30", "8 hours", "1:2:3:4", "-", "1-", ":", ""}) {
    EXPECT_FALSE(parse_time_limit(text)) << text;
  }
}

TEST(Words, AQuotedRuleOfLustreIsSplitOutsideBraces) {
  EXPECT_THAT(
      split_quoted_rule({"--all", "rule", "start dd jobid={dd.0 cp.0} rate=100MiB/s", "--json"}),
      ElementsAre("--all", "rule", "start", "dd", "jobid={dd.0 cp.0}", "rate=100MiB/s", "--json"));
  EXPECT_THAT(split_quoted_rule({"rule", "list"}), ElementsAre("rule", "list"));
  EXPECT_THAT(split_quoted_rule({"rule"}), ElementsAre("rule"));
  EXPECT_THAT(split_quoted_rule({"rule", "eat this"}), ElementsAre("rule", "eat this"));
  EXPECT_THAT(split_quoted_rule({}), IsEmpty());
}

}  // namespace
}  // namespace vpfs::ctl
