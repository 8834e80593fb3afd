#include "stage/config/rule_config.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proxy/config/config.h"
#include "proxy/config/config_summary.h"
#include "test/stage/some_names.h"

namespace vpfs::proxy {
namespace {

using stage::RuleConfig;
using stage::RuleMode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RuleConfigTest : public ::testing::Test {
 protected:
  // Rules from line 3 on.
  Config read(const std::vector<std::string>& rules) {
    std::string text =
        "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}\n"
        "virtual_pfs: {shared: {iops: 2k, burst_iops: 1k}}\n"
        "rules:\n";
    for (const std::string& rule : rules) text += "  - {" + rule + "}\n";
    errors_ = ConfigErrors("p.yaml");
    return parse_config(text, errors_, nullptr, &names_);
  }
  RuleConfig good(const std::string& rule) {
    const Config config = read({rule});
    EXPECT_EQ(errors_.to_string(), "");
    return config.rules.empty() ? RuleConfig() : config.rules.front();
  }
  std::string problem(const std::string& rule) {
    (void)read({rule});
    return errors_.to_string();
  }

  stage::SomeNames names_;
  ConfigErrors errors_{"p.yaml"};
};

TEST_F(RuleConfigTest, AMatchIsAMappingOrATextOfTheSameConditions) {
  const RuleConfig mapping = good(
      "match: {client: ['n[1-2]', 10.0.0.9], jobid: 'a*', gid: physics, account: x, fs: 7, "
      "op: [read, write], hint: {user: [u, v]}, uid: alice}, virtual_pfs: shared");
  EXPECT_EQ(mapping.text.condition,
            "client={n[1-2] 10.0.0.9}&hint.user={u v}&op={read write}&fs=7&uid=alice&jobid=a*&"
            "gid=physics&account=x");
  const RuleConfig text = good("match: '" + mapping.text.condition + "', virtual_pfs: shared");
  EXPECT_EQ(text, mapping);
  ASSERT_EQ(text.any_of.size(), 1U);
  EXPECT_THAT(text.any_of[0].clients, ElementsAre("10.0.1.1", "10.0.1.2", "10.0.0.9"));
  EXPECT_THAT(text.any_of[0].gids, ElementsAre(500));
  EXPECT_EQ(good("match: 'uid=1,uid=2', virtual_pfs: shared").any_of.size(), 2U);
  EXPECT_TRUE(good("match: '*', virtual_pfs: shared").any_of.empty());
}

TEST_F(RuleConfigTest, ARuleOfTheFileHasANameAndAText) {
  EXPECT_EQ(good("virtual_pfs: shared").name, "rules[0]");
  const RuleConfig named = good("name: n, match: {uid: 1}, vpfs: shared, exempt: true");
  EXPECT_EQ(
      named.text,
      (stage::RuleText{.name = "n", .condition = "uid=1", .words = {"vpfs=shared", "exempt"}}));
  (void)read({"name: n, virtual_pfs: shared", "name: n, virtual_pfs: shared"});
  EXPECT_EQ(errors_.to_string(), "p.yaml:5: rules[1].name: another rule is named 'n' on line 4\n");
  EXPECT_EQ(problem("name: default, virtual_pfs: shared"),
            "p.yaml:4: rules[0].name: default is last and takes what no rule matches; it cannot be "
            "a rule\n");
}

TEST_F(RuleConfigTest, ARuleMayHaveItsShareItself) {
  const Config config = read({"name: n, match: {uid: 1}, weight: 4, rate: 1 GiB/s, burst: 65536",
                              "match: {uid: 2}, virtual_pfs: n"});
  EXPECT_EQ(errors_.to_string(), "");
  ASSERT_EQ(config.virtual_pfs.size(), 2U);
  EXPECT_EQ(config.virtual_pfs[0].share.operations, 2000U);
  EXPECT_EQ(config.virtual_pfs[0].share.burst_operations, 1000U);
  EXPECT_EQ(config.virtual_pfs[1].name, "n");
  EXPECT_EQ(config.virtual_pfs[1].share.weight, 4U);
  EXPECT_THAT(config.rules[0].text.words, ElementsAre("weight=4", "rate=1GiB/s", "burst=65536B"));
  EXPECT_EQ(problem("match: {uid: 1}, weight: 4"),
            "p.yaml:4: rules[0].name: is missing: a rule with a share of its own needs one\n");
  EXPECT_EQ(problem("match: {uid: 1}"), "p.yaml:4: rules[0].virtual_pfs: is missing\n");
  EXPECT_EQ(problem("virtual_pfs: shared, vpfs: shared"),
            "p.yaml:4: rules[0].vpfs: is another word for `virtual_pfs`, which is given too\n");
  EXPECT_THAT(problem("name: shared, weight: 4"), HasSubstr("'shared' is declared already"));
  EXPECT_THAT(
      problem("virtual_pfs: shared, rate: 1 MiB/s"),
      HasSubstr(
          "rules[0].rate: belongs to the virtual PFS: expected it as virtual_pfs.shared.rate"));
  EXPECT_THAT(problem("name: n, iops: 1, operations: 1"),
              HasSubstr("rules[0].iops: is another word for `operations`, which is given too"));
}

TEST_F(RuleConfigTest, WordsThatAreNotForAFileSaySo) {
  EXPECT_THAT(problem("virtual_pfs: shared, for: 2 h"),
              HasSubstr("rules[0].for: a rule of the file stays until the file changes"));
  EXPECT_THAT(problem("name: n, total_rate: 1 GiB/s"), HasSubstr("needs a coordinator"));
  EXPECT_THAT(problem("name: n, bandwidth: 1 GiB/s"), HasSubstr("did you mean \"rate\"?"));
}

TEST_F(RuleConfigTest, AMistakeInATextHasItsByte) {
  EXPECT_EQ(problem("match: 'jobid=a&usr=1', virtual_pfs: shared"),
            "p.yaml:4: rules[0].match: byte 8: unknown condition; did you mean \"uid\"?\n");
  EXPECT_EQ(problem("match: 'uid=1&owner=2', virtual_pfs: shared"),
            "p.yaml:4: rules[0].match: byte 6: owner: the protocol orangefs does not show it\n");
  EXPECT_EQ(problem("match: {uid: mallory}, virtual_pfs: shared"),
            "p.yaml:4: rules[0].match.uid: there is no user 'mallory'\n");
}

TEST_F(RuleConfigTest, AShadowRuleAndAnExemptOneAreToldInTheSummary) {
  const Config config = read({"name: try, mode: shadow, match: {jobid: '*'}, rate: 1 MiB/s",
                              "name: root, match: 'uid=0,client=n[1-128]', exempt: true"});
  EXPECT_EQ(errors_.to_string(), "");
  EXPECT_EQ(config.rules[0].mode, RuleMode::shadow);
  EXPECT_TRUE(config.rules[1].exempt);
  const std::string summary = to_summary(config);
  EXPECT_THAT(summary,
              HasSubstr("    jobid *                    counts what rate=1MiB/s would hold\n"
                        "    uid 0, or client n[1-128]  -> root, never held\n"));
  EXPECT_THAT(summary, Not(HasSubstr("try"))) << "it is not a virtual PFS";
}

}  // namespace
}  // namespace vpfs::proxy
