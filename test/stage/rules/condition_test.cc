#include "stage/rules/condition.h"

#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/config/condition_values.h"
#include "test/stage/some_names.h"

namespace vpfs::stage {
namespace {

using ::testing::ElementsAre;

ConditionText parsed(std::string_view text) {
  const auto condition = parse_condition(text);
  EXPECT_TRUE(condition) << text << ": " << condition.error().at << ": " << condition.error().text;
  return condition.value_or(ConditionText());
}
std::string canonical(std::string_view text) {
  return to_string(parsed(text));
}
// "7: what is wrong"
std::string error_of(std::string_view text) {
  const auto condition = parse_condition(text);
  if (condition) return "none";
  return fmt::format("{}: {}", condition.error().at, condition.error().text);
}

TEST(Condition, NothingAndAStarAreEveryRequest) {
  for (const char* text : {"", " ", "*", " * "}) EXPECT_EQ(parsed(text).size(), 0U) << text;
  EXPECT_EQ(canonical("*"), "");
}

TEST(Condition, AndBindsTighterThanOr) {
  const ConditionText condition = parsed("jobid={a b}&uid={500}, client={10.0.0.1}");
  ASSERT_EQ(condition.size(), 2U);
  EXPECT_EQ(condition[0], (ConditionTerms{{.key = "jobid", .values = {"a", "b"}},
                                          {.key = "uid", .values = {"500"}}}));
  EXPECT_EQ(condition[1], (ConditionTerms{{.key = "client", .values = {"10.0.0.1"}}}));
  EXPECT_EQ(to_string(condition), "jobid={a b}&uid=500,client=10.0.0.1");
}

TEST(Condition, WordsOfLustreBecomeOurs) {
  EXPECT_EQ(canonical("nid={192.168.[1-128].[10-20]@tcp 10.0.0.1@o2ib1}&opcode={ost_read}"),
            "client={192.168.[1-128].[10-20] 10.0.0.1}&op=read");
  EXPECT_EQ(canonical("opcode={ost_write}&jobid={dd.0 cp.*}"), "op=write&jobid={dd.0 cp.*}");
  EXPECT_EQ(canonical("operation=metadata & file_system=7"), "op=metadata&fs=7");
}

TEST(Condition, BlanksMayBeBetweenParts) {
  EXPECT_EQ(canonical("  jobid = { a  b } & op = read ,\n uid = 7 "), "jobid={a b}&op=read,uid=7");
}

TEST(Condition, ACommaInBracketsBelongsToTheValue) {
  EXPECT_EQ(canonical("client=n[1-3,7],uid=1"), "client=n[1-3,7],uid=1");
  EXPECT_EQ(parsed("client={n[1-3,7] login1}")[0][0].values,
            (std::vector<std::string>{"n[1-3,7]", "login1"}));
  EXPECT_EQ(parsed("jobid=a[b,uid=1").size(), 2U) << "without its end it is a byte like others";
}

TEST(Condition, AQuotedValueMayHaveAnyBytes) {
  EXPECT_EQ(parsed(R"(jobid={"a b" "x""y" "{,&}"})")[0][0].values,
            (std::vector<std::string>{"a b", "x\"y", "{,&}"}));
  EXPECT_EQ(canonical(R"(jobid={"plain" "a b"})"), R"(jobid={plain "a b"})");
  EXPECT_EQ(canonical(R"(hint."job name"=x&hint.user=y)"), R"(hint."job name"=x&hint.user=y)");
}

TEST(Condition, EveryMistakeHasItsByte) {
  EXPECT_EQ(error_of("jobid"), "5: jobid needs a value, such as jobid=a or jobid={a b}");
  EXPECT_EQ(error_of("jobid="), "6: a value is missing here");
  EXPECT_EQ(error_of("jobid={}"), "6: an empty list matches nothing");
  EXPECT_EQ(error_of("jobid={a b"), "6: this { is never closed");
  EXPECT_EQ(error_of("jobid={a,b}"), "8: expected a blank between the values of a list");
  EXPECT_EQ(error_of("jobid={a ,b}"),
            "9: expected a blank, not a comma, between the values of a list");
  EXPECT_EQ(error_of("jobid=a}"), "7: there is no { before this }");
  EXPECT_EQ(error_of("jobid=a uid=5"), "8: expected & (and) or , (or) between conditions");
  EXPECT_EQ(error_of("jobid=a&"), "8: expected a condition here, such as jobid={a b}");
  EXPECT_EQ(error_of(",jobid=a"), "0: expected a condition here, such as jobid={a b}");
  EXPECT_EQ(error_of("jobid=\"a"), "6: this quote is never closed");
  EXPECT_EQ(error_of("uid=1&user=2"), "6: unknown condition; did you mean \"uid\"?");
  EXPECT_EQ(error_of("jobbid=x"), "0: unknown condition; did you mean \"jobid\"?");
  EXPECT_EQ(error_of("colour=red"),
            "0: unknown condition (known: jobid, uid, gid, client, op, fs, dir, owner, node, "
            "account, target, hint.NAME)");
  EXPECT_EQ(error_of("nid=10.0.0.1&client=10.0.0.2"),
            "13: client is given twice; client={a b} takes either");
  EXPECT_EQ(error_of("hint.=x"), "5: the hint has no name: expected one such as hint.user=ann");
  EXPECT_EQ(error_of("*&uid=1"),
            "0: unknown condition (known: jobid, uid, gid, client, op, fs, "
            "dir, owner, node, account, target, hint.NAME)");
  EXPECT_EQ(error_of("jobid=" + std::string(70'000, 'a')), "65536: has more than 65536 bytes");
}

// Random conditions, with every kind of byte in their values.
TEST(Condition, WhatIsPrintedIsReadAgain) {
  std::mt19937 random(11);
  const auto below = [&](std::uint32_t most) { return random() % most; };
  const auto text = [&] {
    constexpr std::string_view kBytes = "ab1-*?[],.{}&=\"@ \\\n\x01\xe9";
    std::string made;
    for (auto left = below(6); left > 0; --left) made += kBytes[below(kBytes.size())];
    return made;
  };
  const std::vector<std::string> keys = {"jobid", "uid", "client", "op", "fs", "account"};
  for (int i = 0; i < 20'000; ++i) {
    ConditionText condition;
    for (auto alternatives = below(4); alternatives > 0; --alternatives) {
      ConditionTerms& terms = condition.emplace_back();
      for (auto left = 1 + below(3); left > 0; --left) {
        const std::string key = below(4) == 0 ? "hint." + text() : keys[below(6)];
        if (has_term(terms, key)) continue;
        ConditionTerm& term = terms.emplace_back(ConditionTerm{.key = key, .values = {}});
        for (auto values = 1 + below(3); values > 0; --values) {
          term.values.push_back(canonical_value(key, text()));
        }
      }
    }
    const std::string printed = to_string(condition);
    const auto again = parse_condition(printed);
    ASSERT_TRUE(again) << printed << ": " << again.error().text;
    ASSERT_EQ(*again, condition) << printed;
    ASSERT_EQ(to_string(*again), printed);
  }
}

class ConditionValues : public ::testing::Test {
 protected:
  ConditionValues() {
    config_.source = "the protocol orangefs";
    config_.shown = {Attribute::hint, Attribute::file_system, Attribute::uid, Attribute::metadata};
    config_.names = &names_;
  }
  // Problems go to problems_ as "term/value: text".
  Conditions read(std::string_view text) {
    problems_.clear();
    Conditions made;
    for (const ConditionTerms& terms : parsed(text)) {
      made = read_conditions(
          terms, config_,
          [&](const ConditionTerm& term, std::optional<std::size_t> value,
              const std::string& problem) {
            problems_.push_back(
                fmt::format("{}/{}: {}", term.key, value ? std::to_string(*value) : "-", problem));
          });
    }
    return made;
  }
  std::string problem(std::string_view text) {
    (void)read(text);
    return problems_.size() == 1 ? problems_.front() : fmt::format("{} problems", problems_.size());
  }

  SomeNames names_;
  Config config_;
  std::vector<std::string> problems_;
};

TEST_F(ConditionValues, NumbersAreNumbersRangesOrNames) {
  EXPECT_EQ(read("uid={7 [10-12] alice 20-21}").uids,
            (std::vector<std::uint64_t>{7, 10, 11, 12, 1001, 20, 21}));
  EXPECT_EQ(read("gid=physics").gids, std::vector<std::uint64_t>{500});
  EXPECT_THAT(problems_, ElementsAre());
  EXPECT_EQ(problem("uid={1 mallory}"), "uid/1: there is no user 'mallory'");
  EXPECT_EQ(problem("gid=alice"), "gid/0: there is no group 'alice'");
  EXPECT_EQ(problem("uid=-1"), "uid/0: '-1' is not a number from 0 to 4294967295");
  EXPECT_EQ(problem("uid=[5-3]"), "uid/0: '[5-3]' is not a number from 0 to 4294967295");
  EXPECT_EQ(problem("uid=[0-65536]"), "uid/0: '[0-65536]' stands for more than 65536 numbers");
  EXPECT_EQ(read("uid=[0-65535]").uids.size(), 65'536U);
  EXPECT_EQ(problem("uid={[0-65535] 70000}"), "uid/1: '70000' stands for more than 65536 numbers");
}

TEST_F(ConditionValues, WithoutNamesNumbersAreLeft) {
  config_.names = nullptr;
  EXPECT_EQ(problem("uid=alice"), "uid/0: 'alice': names of users cannot be looked up here");
  EXPECT_EQ(problem("gid=physics"), "gid/0: 'physics': names of groups cannot be looked up here");
  EXPECT_EQ(problem("client=login1"),
            "client/0: 'login1': names of hosts cannot be looked up here");
  EXPECT_EQ(read("uid=7&client=10.0.0.1").uids.size(), 1U);
}

TEST_F(ConditionValues, WhatRequestsDoNotShowIsAMistakeUnlessAJobsRegistrationTells) {
  EXPECT_EQ(problem("owner=7"), "owner/-: the protocol orangefs does not show it");
  EXPECT_EQ(problem("node=7"), "node/-: the protocol orangefs does not show it");
  EXPECT_EQ(problem("dir=x"), "dir/-: the protocol orangefs does not show it");
  (void)read("jobid=a&gid=7&account=x");
  EXPECT_THAT(problems_, ElementsAre());
  config_.shown = {};
  EXPECT_EQ(problem("op=metadata"), "op/-: the protocol orangefs does not show it");
  EXPECT_EQ(problem("hint.user=x"), "hint.user/-: the protocol orangefs does not show it");
}

TEST_F(ConditionValues, OperationsAreThree) {
  EXPECT_EQ(read("op={read ost_write}").kinds, (std::vector{IoKind::read, IoKind::write}));
  EXPECT_EQ(problem("op=ost_punch"), "op/0: \"ost_punch\" is not one of: read, write, metadata");
}

TEST_F(ConditionValues, AnEmptyPatternMatchesNothing) {
  EXPECT_EQ(problem("jobid=\"\""),
            "jobid/0: an empty pattern matches nothing; '*' matches any value");
  EXPECT_EQ(problem("hint.user={a \"\"}"),
            "hint.user/1: the pattern of 'user' is empty; '*' matches any value");
}

TEST_F(ConditionValues, BracketsOfAPatternAreNotARangeOfNumbers) {
  EXPECT_EQ(problem("jobid={a [4711-4715]}"),
            "jobid/1: '[4711-4715]' is a pattern, in which brackets match one character: "
            "expected a list such as {4711 4712}, or *");
  EXPECT_EQ(read("jobid=[0-9][0-9]x[a-f]").jobids, std::vector<std::string>{"[0-9][0-9]x[a-f]"});
}

}  // namespace
}  // namespace vpfs::stage
