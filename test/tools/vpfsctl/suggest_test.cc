#include "tools/vpfsctl/suggest.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::ctl {
namespace {

const std::vector<std::string> kCommands = {"rule", "job", "status", "job_stats", "who"};
const std::vector<std::string> kRuleCommands = {"start", "change", "stop", "list"};

TEST(Suggest, AMistypedCommandProposesTheNearest) {
  EXPECT_EQ(unknown_command("ruel", "", kCommands), "unknown command \"ruel\"; did you mean rule?");
  EXPECT_EQ(unknown_command("jobstats", "", kCommands),
            "unknown command \"jobstats\"; did you mean job_stats?");
  EXPECT_EQ(unknown_command("strat", "rule", kRuleCommands),
            "unknown command \"rule strat\"; did you mean rule start?");
}

TEST(Suggest, AWordOfLctlProposesOurs) {
  EXPECT_EQ(unknown_command("nrs_tbf_rule=start dd", "", kCommands),
            "unknown command \"nrs_tbf_rule=start dd\"; did you mean rule start NAME COND WORDS, "
            "rule change NAME WORDS or rule stop NAME?");
  EXPECT_EQ(unknown_command("start", "", kCommands),
            "unknown command \"start\"; did you mean rule start or job start?");
  EXPECT_EQ(unknown_command("delete", "rule", kRuleCommands),
            "unknown command \"rule delete\"; did you mean rule stop?");
}

TEST(Suggest, AWordThatIsNearNothingGetsTheWholeList) {
  EXPECT_EQ(unknown_command("xyzzy", "rule", kRuleCommands),
            "unknown command \"rule xyzzy\" (known here: start, change, stop, list)");
}

TEST(Suggest, AMistypedOptionProposesTheNearest) {
  const std::vector<std::string> options = {"--json", "--proxy", "--proxies"};
  EXPECT_EQ(unknown_option("--jsno=1", options), "unknown option --jsno; did you mean --json?");
  EXPECT_EQ(unknown_option("-z", options), "unknown option -z");
}

}  // namespace
}  // namespace vpfs::ctl
