#include "stage/book/rule_set_file.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/stage/book/driver.h"

namespace vpfs::stage {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Read {
  ApplySet set;
  std::vector<std::string> errors;
};

Read read(const std::string& text) {
  const BookDriver driver;
  ConfigErrors errors("rules.yaml");
  Read made;
  made.set = read_rule_set(text, driver.file, driver.book.state(), &plain_rule, errors);
  made.errors = errors.lines();
  return made;
}

TEST(RuleSetFile, RulesAndSharesAreReadAsTexts) {
  const Read made = read(R"(
virtual_pfs:
  pool: {weight: 4, rate: 100 MiB/s}
  default: {weight: 2}
rules:
  - name: backup
    match: client=10.0.0.9&op=read
    rate: 100 MiB/s
    for: 2h
  - {name: night, match: {jobid: [a, "b c"], op: read, hint: {user: ann}}, virtual_pfs: pool}
  - {name: late, vpfs: last}
  - {name: last, weight: 3}
)");
  EXPECT_THAT(made.errors, IsEmpty());
  ASSERT_EQ(made.set.rules.size(), 4U);
  EXPECT_EQ(made.set.rules[0].text,
            (RuleText{"backup", "client=10.0.0.9&op=read", {"rate=100 MiB/s", "for=2h"}}));
  EXPECT_EQ(made.set.rules[1].text,
            (RuleText{"night", R"(jobid={a "b c"}&op=read&hint.user=ann)", {"virtual_pfs=pool"}}));
  ASSERT_EQ(made.set.shares.size(), 2U);
  EXPECT_EQ(made.set.shares[0],
            (ApplySet::DeclaredShare{"pool", {"weight=4", "rate=100 MiB/s"}, false}));
  EXPECT_EQ(made.set.shares[1], (ApplySet::DeclaredShare{"default", {"weight=2"}, true}));
  BookDriver driver;
  EXPECT_EQ(driver.refusal(made.set), "");
}

TEST(RuleSetFile, EveryMistakeIsFoundWithItsLineAndKey) {
  const Read made = read(R"(rules:
  - match: uid=1
    weight: 4
  - name: b
    match: wrong
    operations: 0
  - {name: c, vpfs: nowhere}
  - {name: d, weight: [1, 2]}
virtual_pfs:
  pool: {mode: shadow}
rule: []
)");
  EXPECT_THAT(made.errors,
              ElementsAre(HasSubstr("rules.yaml:2: rules[0].name: "),
                          "rules.yaml:5: rules[1].match: byte 3: a mistake",
                          "rules.yaml:6: rules[1].operations: '0' is wrong",
                          "rules.yaml:7: rules[2].vpfs: 'nowhere' is not declared",
                          HasSubstr("rules.yaml:8: rules[3].weight: "),
                          "rules.yaml:10: virtual_pfs.pool.mode: is not a word of a share",
                          HasSubstr("rules.yaml:11: rule: unknown key")));
}

TEST(RuleSetFile, MoreRulesThanThereMayBeAreOneErrorAndAreNotReadAsRules) {
  std::string text = "rules:\n";
  for (std::size_t i = 0; i <= RuleBook::kMostRules; ++i) text += "- {what: is, this: }\n";
  EXPECT_THAT(read(text).errors,
              Contains(HasSubstr("rules.yaml:1: rules: 10001 rules: expected at most")));
  text = "rules:\n";
  for (std::size_t i = 0; i <= RuleBook::kMostRules; ++i) {
    text += "- {name: r" + std::to_string(i) + ", match: 'no condition'}\n";
  }
  EXPECT_THAT(read(text).errors,
              ElementsAre("rules.yaml:1: rules: 10001 rules: expected at most 10000"));
}

// A command that failed in front of a pipe must not remove all rules.
TEST(RuleSetFile, ATextWithoutRulesIsAMistakeUnlessItSaysSo) {
  for (const char* nothing : {"", "\n", "# rules: []\n", "{}", "---\n"}) {
    EXPECT_THAT(read(nothing).errors,
                ElementsAre(HasSubstr("rules: is missing: expected a list of rules")))
        << nothing;
  }
  EXPECT_THAT(read("rules: []").errors, IsEmpty());
  EXPECT_THAT(read("virtual_pfs: {pool: {weight: 2}}").errors, IsEmpty());
}

TEST(RuleSetFile, ATextThatIsNotYamlIsOneError) {
  EXPECT_THAT(read("rules: [").errors, ElementsAre(HasSubstr("rules.yaml:")));
  EXPECT_THAT(read("- a").errors, ElementsAre(HasSubstr("rules.yaml:1")));
}

}  // namespace
}  // namespace vpfs::stage
