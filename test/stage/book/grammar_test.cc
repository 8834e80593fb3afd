// The rule book with the whole grammar of rules.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/book/composer.h"
#include "stage/book/rule_book.h"
#include "stage/book/rule_set_file.h"
#include "stage/config/live_words.h"
#include "stage/config/rule_config.h"
#include "stage/config/rule_text.h"
#include "stage/config/scheduler_config.h"
#include "stage/config/share_config.h"
#include "stage/rules/pattern.h"

namespace vpfs::stage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr WallTime kNow = WallTime(std::chrono::seconds(1'800'000'000));

struct GrammarBook : testing::Test {
  Config file;
  RuleBook book{&parse_rule};

  GrammarBook() {
    file.source = "the protocol of this test";
    file.shown.add(Attribute::hint);
    file.shown.add(Attribute::uid);
    ConfigErrors errors("proxy.yaml");
    {
      ConfigReader reader(R"(
virtual_pfs:
  bulk: {weight: 2, rate: 100 MiB/s}
  'user-{uid}': {weight: 3}
rules:
  - {name: climate, match: 'jobid={a b}', weight: 4, iops: 2000}
  - {name: trial, match: {uid: 9}, mode: shadow, rate: 1 MiB/s}
  - {name: nightly, match: {uid: 5}, virtual_pfs: bulk}
  - {match: {uid: [6, 7]}, virtual_pfs: 'user-{uid}'}
)",
                          errors);
      read_shares(reader, file);
      read_rules(reader, file);
    }
    EXPECT_THAT(errors.lines(), IsEmpty());
  }

  template <typename What>
  std::string refusal(What what) {
    const auto change = book.prepare({.at = kNow, .who = "alice", .what = std::move(what)}, file);
    if (!change) return change.error().place + ": " + change.error().text;
    book.commit(change->operation);
    return "";
  }
  StartRule rule(std::string name, std::string condition, std::vector<std::string> words) {
    return {.rule = {std::move(name), std::move(condition), std::move(words)}};
  }
  Composer::Composed composed() {
    Composer composer(&parse_rule);
    return composer.compose(file, book.state());
  }
  std::vector<std::string> rules() {
    std::vector<std::string> lines;
    for (const RuleConfig& each : composed().config.rules) lines.push_back(rule_line(each.text));
    return lines;
  }
  Share share_of(const std::string& name) {
    for (const VirtualPfsConfig& each : composed().config.virtual_pfs) {
      if (each.name == name) return each.share;
    }
    ADD_FAILURE() << name;
    return {};
  }
};

TEST_F(GrammarBook, LiveRulesAreListedInTheirShortestForm) {
  ASSERT_EQ(refusal(rule("ann", "jobid={x   y} & opcode=ost_read", {"operations=2k", "weight=8"})),
            "");
  EXPECT_EQ(rules().front(), "ann 'jobid={x y}&op=read' weight=8 iops=2k");
  EXPECT_EQ(share_of("ann").operations, 2000U);
  ASSERT_EQ(refusal(ChangeRule{.name = "ann", .words = {"rate=5MiB/s", "iops=none", "for=2h"}}),
            "");
  EXPECT_EQ(rules().front(), "ann 'jobid={x y}&op=read' weight=8 rate=5MiB/s");
  EXPECT_EQ(book.next_deadline(), kNow + std::chrono::hours(2));
}

TEST_F(GrammarBook, WhatTheGrammarRefusesIsRefusedWithItsPlace) {
  EXPECT_THAT(refusal(rule("ann", "jobid=x&wrong=1", {})), HasSubstr("COND:8: unknown condition"));
  EXPECT_THAT(refusal(rule("ann", "jobid=x", {"weigth=8"})), HasSubstr("weigth: "));
  EXPECT_THAT(refusal(rule("ann", "jobid=x", {"rate=500"})), HasSubstr("rate: "));
  EXPECT_THAT(refusal(rule("ann", "jobid=x", {"vpfs=none"})), HasSubstr("vpfs: "));
  ASSERT_EQ(refusal(rule("ann", "jobid=x", {"rate=5MiB/s"})), "");
  EXPECT_THAT(refusal(ChangeRule{.name = "ann", .words = {"rat=none"}}),
              HasSubstr("rat: is not a word of a rule"));
  EXPECT_THAT(refusal(ChangeRule{.name = "ann", .words = {"x\n2026-11-22 root: forged=none"}}),
              HasSubstr("is not a word of a rule"));
  EXPECT_EQ(refusal(ChangeRule{.name = "ann", .words = {"min=none"}}), "") << "it has none";
  EXPECT_THAT(refusal(ChangeRule{.name = "climate", .words = {"class=bulk"}}),
              HasSubstr("class: is not a word of a share"));
}

TEST_F(GrammarBook, SharesOfTheFileAreChangedWhoeverDeclaresThem) {
  for (const char* name : {"climate", "nightly", "bulk", "rules[3]", "default"}) {
    EXPECT_EQ(refusal(ChangeRule{.name = name, .words = {"weight=9"}}), "") << name;
  }
  EXPECT_THAT(composed().suspended, IsEmpty());
  EXPECT_EQ(share_of("climate").weight, 9U);
  EXPECT_EQ(share_of("climate").operations, 2000U);
  EXPECT_EQ(share_of("bulk").weight, 9U);
  EXPECT_EQ(share_of("bulk").rate.count, 100 * kMiB);
  EXPECT_EQ(share_of("user-{uid}").weight, 9U);
  EXPECT_EQ(share_of("default").weight, 9U);
  EXPECT_EQ(rules().front(), "climate 'jobid={a b}' weight=9 iops=2000");
  EXPECT_EQ(composed().config.rules.front().any_of, file.rules.front().any_of);
}

TEST_F(GrammarBook, TheLimitsOfAShadowRuleOfTheFileAreChangedAsSuch) {
  ASSERT_EQ(refusal(ChangeRule{.name = "trial", .words = {"rate=2MiB/s"}}), "");
  EXPECT_EQ(share_of("trial").rate.count, 2 * kMiB);
  EXPECT_EQ(composed().config.rules[1].mode, RuleMode::shadow);
  EXPECT_THAT(refusal(ChangeRule{.name = "trial", .words = {"weight=3"}}),
              HasSubstr("weight: a shadow rule has limits alone"));
}

TEST_F(GrammarBook, TheRuleOfAJobMatchesJustItsId) {
  for (const char* id : {"4711", "4711_3", "4711[3]", R"(a "b"*?\c)"}) {
    ASSERT_EQ(
        refusal(StartJob{.job = {.jobid = id, .clients = {"10.0.0.1"}}, .words = {"weight=4"}}), "")
        << id;
  }
  for (const RuleConfig& each : composed().config.rules) {
    if (each.origin != RuleOrigin::job) continue;
    ASSERT_EQ(each.any_of.size(), 1U);
    ASSERT_EQ(each.any_of[0].jobids.size(), 1U);
    const Pattern pattern(each.any_of[0].jobids[0]);
    EXPECT_TRUE(pattern.is_literal());
    EXPECT_EQ(std::string(kJobRulePrefix) + std::string(pattern.prefix()), each.name);
  }
}

TEST_F(GrammarBook, ASetIsReadInTheGrammarOfTheFile) {
  ConfigErrors errors("rules.yaml");
  const ApplySet set = read_rule_set(R"(
virtual_pfs:
  pool: {weight: 5, burst: 1 GiB, rate: 1 GiB/s}
  bulk: {rate: 50 MiB/s}
rules:
  - {name: a, match: {jobid: ["x*", "y z"], operation: read}, virtual_pfs: pool}
  - {name: b, match: 'client=10.0.[0-3].1, uid=3', weight: 7, for: 2h}
  - {name: c, match: {hint: {user: "a b"}}, vpfs: b}
)",
                                     file, book.state(), &parse_rule, errors);
  EXPECT_THAT(errors.lines(), IsEmpty());
  ASSERT_EQ(refusal(set), "");
  EXPECT_THAT(composed().suspended, IsEmpty());
  const std::vector<std::string> lines = rules();
  EXPECT_EQ(lines[0], R"(a 'jobid={x* "y z"}&op=read' vpfs=pool)");
  EXPECT_EQ(lines[1], "b 'client=10.0.[0-3].1,uid=3' weight=7");
  EXPECT_EQ(lines[2], R"(c 'hint.user="a b"' vpfs=b)");
  EXPECT_EQ(share_of("pool").burst.count, kGiB);
  EXPECT_EQ(share_of("bulk").rate.count, 50 * kMiB);
  EXPECT_EQ(share_of("bulk").weight, 2U);
}

TEST_F(GrammarBook, AMistakeInASetHasItsLine) {
  ConfigErrors errors("rules.yaml");
  (void)read_rule_set(R"(rules:
  - name: a
    match: {uid: [x], wrong: 3}
    rate: 500
)",
                      file, book.state(), &parse_rule, errors);
  EXPECT_THAT(errors.lines(), ElementsAre(HasSubstr("rules.yaml:3: rules[0].match: byte"),
                                          HasSubstr("rules.yaml:4: rules[0].rate: ")));
}

TEST_F(GrammarBook, TheWordsOfAShareGiveTheSameShare) {
  VirtualPfsConfig all = {.name = "default"};
  all.share = {.weight = 4,
               .rate = {1'000'000},
               .operations = 2000,
               .burst = {3 * kMiB / 2},
               .burst_operations = 7,
               .realtime = true,
               .min = {kMiB / 2}};
  const auto parsed = parse_rule({"default", "", words_of_share(all)}, file);
  ASSERT_TRUE(parsed) << parsed.error().front().place << parsed.error().front().text;
  EXPECT_EQ(parsed->declares, all);
}

TEST_F(GrammarBook, WithTheFinishOfADeadlineToo) {
  ConfigErrors errors("proxy.yaml");
  {
    ConfigReader reader("scheduler: {policy: edf, edf: {capacity: 1 GiB/s}}", errors);
    read_scheduler(reader.child("scheduler"), file, nullptr);
  }
  EXPECT_THAT(errors.lines(), IsEmpty());
  VirtualPfsConfig all = {.name = "default"};
  all.share = {.latency = std::chrono::microseconds(1'500'000), .finish_bytes = {7 * kGiB}};
  all.finish_within = std::chrono::minutes(90);
  const auto parsed = parse_rule({"default", "", words_of_share(all)}, file);
  ASSERT_TRUE(parsed) << parsed.error().front().place << parsed.error().front().text;
  EXPECT_EQ(parsed->declares, all);
}

}  // namespace
}  // namespace vpfs::stage
