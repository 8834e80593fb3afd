#include "stage/rules/rule_checks.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proxy/config/config.h"

namespace vpfs::proxy {
namespace {

using ::testing::ElementsAre;

// The warnings about a file with these rules, one per line from line 6 on.
std::vector<std::string> warnings_of(const std::string& protocol,
                                     const std::vector<std::string>& rules) {
  std::string text =
      "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1', protocol: " + protocol +
      "}\n"
      "virtual_pfs:\n"
      "  a: {}\n"
      "  'user-{uid}': {}\n"
      "rules:\n";
  for (const std::string& rule : rules) text += "  - {" + rule + "}\n";
  ConfigErrors errors("p.yaml");
  const Config config = parse_config(text, errors);
  EXPECT_EQ(errors.to_string(), "");
  stage::warn_of_hidden_rules(config.rules, errors);
  return errors.warnings();
}

// Whether a rule with the conditions `first` hides one with the conditions `later`.
bool hides(const std::string& protocol, const std::string& first, const std::string& later) {
  return !warnings_of(protocol, {"match: {" + first + "}, virtual_pfs: default",
                                 "match: {" + later + "}, virtual_pfs: default"})
              .empty();
}

TEST(RuleChecks, ARuleBehindOneThatMatchesEverythingIsToldWithTheOneThatHidesIt) {
  EXPECT_THAT(
      warnings_of("orangefs",
                  {"match: {op: read}, virtual_pfs: default", "virtual_pfs: a",
                   "match: {client: 10.0.0.1}, virtual_pfs: default", "virtual_pfs: default"}),
      ElementsAre(
          "p.yaml:8: rules[2]: never applies: rules[1] on line 7 (to a) matches all that it would",
          "p.yaml:9: rules[3]: never applies: rules[1] on line 7 (to a) matches all that it "
          "would"));
}

TEST(RuleChecks, TheSameOrWeakerConditionsHide) {
  const char* const kOrangefs = "orangefs";
  EXPECT_TRUE(hides(kOrangefs, "client: 10.0.0.0/8", "client: 10.1.2.3"));
  EXPECT_TRUE(
      hides(kOrangefs, "client: [10.0.0.0/8, 11.0.0.0/8]", "client: [10.1.2.3, 11.1.0.0/16]"));
  EXPECT_TRUE(hides(kOrangefs, "hint: {jobid: '*'}", "hint: {jobid: a}"));
  EXPECT_TRUE(hides(kOrangefs, "hint: {jobid: 'a*'}", "hint: {jobid: ab, user: x}, op: read"));
  EXPECT_TRUE(hides(kOrangefs, "hint: {jobid: 'a*b'}", "hint: {jobid: 'a*b'}"));
  EXPECT_TRUE(hides(kOrangefs, "op: read", "op: read, uid: 1"));
  EXPECT_TRUE(hides(kOrangefs, "uid: [1, 2]", "uid: 2"));
  EXPECT_TRUE(hides(kOrangefs, "file_system: 1", "file_system: 1"));
  const char* const kBeegfs = "beegfs";
  EXPECT_TRUE(hides(kBeegfs, "dir: '4-*'", "dir: 4-5F2A-1"));
  EXPECT_TRUE(hides(kBeegfs, "owner: [1, 2], node: 7", "owner: 1, node: 7, target: 3"));
}

TEST(RuleChecks, RulesThatMayStillApplyAreLeftAlone) {
  const char* const kOrangefs = "orangefs";
  EXPECT_FALSE(hides(kOrangefs, "client: 10.1.2.3", "client: 10.0.0.0/8"));
  EXPECT_FALSE(hides(kOrangefs, "client: 10.0.0.0/8", "client: [10.1.2.3, 11.0.0.1]"));
  EXPECT_FALSE(hides(kOrangefs, "client: 10.0.0.0/8", "op: read"));
  EXPECT_FALSE(hides(kOrangefs, "hint: {jobid: a}", "hint: {jobid: '*'}"));
  EXPECT_FALSE(hides(kOrangefs, "hint: {jobid: 'a*'}", "hint: {jobid: '*b'}"));
  EXPECT_FALSE(hides(kOrangefs, "hint: {jobid: '*', user: x}", "hint: {jobid: a}"));
  EXPECT_FALSE(hides(kOrangefs, "op: read", "op: write"));
  EXPECT_FALSE(hides(kOrangefs, "op: read", "uid: 1"));
  EXPECT_FALSE(hides(kOrangefs, "uid: 1", "uid: [1, 2]"));
  const char* const kBeegfs = "beegfs";
  EXPECT_FALSE(hides(kBeegfs, "target: 1", "node: 1"));
  EXPECT_FALSE(hides(kBeegfs, "owner: 1", "owner: 2"));
  EXPECT_FALSE(hides(kBeegfs, "dir: '*'", "uid: 1"));
}

TEST(RuleChecks, ConditionsOnJobsHideToo) {
  const char* const kOrangefs = "orangefs";
  EXPECT_TRUE(hides(kOrangefs, "jobid: '*'", "jobid: [a, 'b*'], gid: 7"));
  EXPECT_TRUE(hides(kOrangefs, "gid: [7-9]", "gid: 8, account: x"));
  EXPECT_TRUE(hides(kOrangefs, "account: 'phys*'", "account: physics"));
  EXPECT_TRUE(hides(kOrangefs, "op: [read, write]", "op: write"));
  EXPECT_FALSE(hides(kOrangefs, "jobid: a", "hint: {jobid: a}")) << "a hint may be missing";
  EXPECT_FALSE(hides(kOrangefs, "account: '*'", "gid: 8"));
  EXPECT_FALSE(hides(kOrangefs, "op: write", "op: [read, write]"));
}

TEST(RuleChecks, EachAlternativeMustBeTakenByOneOfAnotherRule) {
  const auto warned = [](const std::string& first, const std::string& later) {
    return !warnings_of("orangefs", {"match: '" + first + "', virtual_pfs: a",
                                     "match: '" + later + "', virtual_pfs: default"})
                .empty();
  };
  EXPECT_TRUE(warned("uid={1 2},jobid=*", "jobid=a,uid=2"));
  EXPECT_TRUE(warned("uid=1,uid=2,uid=3", "uid=3,uid=1&op=read"));
  EXPECT_FALSE(warned("uid={1 2}", "jobid=a,uid=2"));
}

TEST(RuleChecks, AShadowRuleHidesShadowRulesAlone) {
  const std::string shadow = "name: s, mode: shadow, rate: 1 MiB/s";
  const std::string other = "name: t, mode: shadow, rate: 1 MiB/s";
  EXPECT_THAT(warnings_of("orangefs", {shadow, "virtual_pfs: a"}), ElementsAre());
  EXPECT_THAT(warnings_of("orangefs", {shadow, other}),
              ElementsAre("p.yaml:7: rules[1]: 't' never applies: rules[0] 's' on line 6 (to s) "
                          "matches all that it would"));
  EXPECT_EQ(warnings_of("orangefs", {"virtual_pfs: a", shadow}).size(), 1U);
}

// The rules that are compared are those that match an example.
TEST(RuleChecks, EveryHiddenRuleOfAThousandIsFound) {
  std::vector<stage::RuleConfig> rules;
  const auto add = [&](const stage::Conditions& conditions) {
    rules.push_back({.any_of = {conditions}, .virtual_pfs = "v"});
  };
  for (std::uint64_t i = 0; i < 300; ++i) {
    add({.uids = {i}});
    add({.jobids = {"job-" + std::to_string(i) + "-*"}});
    add({.clients = {"10.0." + std::to_string(i % 256) + ".0/24"}});
  }
  const std::size_t count = rules.size();
  for (std::uint64_t i = 0; i < 300; ++i) {
    add({.clients = {"11.0.0.1"}, .uids = {i}});
    add({.jobids = {"job-" + std::to_string(i) + "-7"}});
    add({.clients = {"10.0." + std::to_string(i % 256) + ".9"}});
  }
  const auto hiding = stage::hiding_rules(rules);
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_again = i % 3 == 2 && i / 3 >= 256;  // the same network as before
    EXPECT_EQ(hiding[i].has_value(), is_again) << i;
    const std::size_t first = i % 3 == 2 ? i % (256 * 3) : i;
    EXPECT_EQ(hiding[count + i], std::optional(first)) << i;
  }
}

// A template applies only if the values that it names are known.
TEST(RuleChecks, ATemplateHidesOnlyWhereItsFieldsAreKnown) {
  EXPECT_THAT(warnings_of("beegfs", {"virtual_pfs: 'user-{uid}'", "virtual_pfs: default",
                                     "match: {owner: 3}, virtual_pfs: a"}),
              ElementsAre("p.yaml:8: rules[2]: never applies: rules[1] on line 7 (to default) "
                          "matches all that it would"));
  EXPECT_THAT(
      warnings_of("beegfs", {"virtual_pfs: 'user-{uid}'", "match: {uid: 5}, virtual_pfs: a"}),
      ElementsAre("p.yaml:7: rules[1]: never applies: rules[0] on line 6 (to user-{uid}) "
                  "matches all that it would"));
  EXPECT_THAT(warnings_of("beegfs", {"match: {op: read}, virtual_pfs: a",
                                     "match: {op: read}, virtual_pfs: 'user-{uid}'"}),
              ElementsAre("p.yaml:7: rules[1]: never applies: rules[0] on line 6 (to a) matches "
                          "all that it would"));
}

}  // namespace
}  // namespace vpfs::proxy
