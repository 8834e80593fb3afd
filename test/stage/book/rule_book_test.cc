#include "stage/book/rule_book.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/book/record.h"
#include "test/stage/book/driver.h"

namespace vpfs::stage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RuleBook, LiveRulesComeBeforeTheFilesTheNewestFirst) {
  BookDriver driver;
  EXPECT_EQ(driver.refusal(start_rule("a", {"weight=4"})), "");
  EXPECT_EQ(driver.refusal(start_rule("b")), "");
  EXPECT_THAT(driver.rules(),
              ElementsAre("b", "a weight=4", "climate weight=2", "nightly vpfs=bulk"));
  EXPECT_EQ(driver.share_of("a").weight, 4U);
}

TEST(RuleBook, PreparingChangesNothing) {
  BookDriver driver;
  ASSERT_TRUE(driver.prepare(start_rule("a")));
  EXPECT_EQ(driver.book.state(), BookState{});
}

TEST(RuleBook, ARuleWithAMistakeIsRefusedWithItsPlace) {
  BookDriver driver;
  EXPECT_EQ(driver.refusal(start_rule("a", {"weight=x"})), "weight: 'x' is wrong");
  EXPECT_EQ(driver.refusal(start_rule("a", {}, "wrong")), "COND:3: a mistake");
  EXPECT_EQ(driver.refusal(start_rule("a", {"weight=x", "rate=5"})),
            "weight: 'x' is wrong; rate: '5' is wrong");
  EXPECT_EQ(driver.refusal(start_rule("", {})), "NAME: must be 1 to 128 bytes of printable ASCII");
  EXPECT_THAT(driver.refusal(start_rule("default")), HasSubstr("always last"));
  EXPECT_THAT(driver.refusal(start_rule("job:1")), HasSubstr("for the rules of jobs"));
  EXPECT_THAT(driver.refusal(start_rule("a", {"weight=\xff"})), HasSubstr("is wrong"));
  EXPECT_EQ(driver.refusal(start_rule("a", {}, "dir=\xff")), ": a text is not UTF-8");
  EXPECT_THAT(driver.rules(), ElementsAre("climate weight=2", "nightly vpfs=bulk"));
}

TEST(RuleBook, ANameMeansOneRule) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a")), "");
  EXPECT_EQ(driver.refusal(start_rule("a")),
            "NAME: there is a rule 'a' already; `rule change a` changes it");
  EXPECT_EQ(driver.refusal(start_rule("nightly")),
            "NAME: the configuration file has a rule 'nightly' already");
  EXPECT_EQ(driver.refusal(start_rule("bulk")),
            "NAME: the configuration file declares a virtual PFS 'bulk' already; vpfs=bulk sends "
            "to it");
  EXPECT_EQ(driver.run(start_rule("a")).error().code, ProblemCode::exists);
}

TEST(RuleBook, ChangeReplacesSingleWords) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a", {"weight=4", "rate=1MiB/s", "operations=100"})), "");
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "a", .words = {"weight=8", "rate=none"}}), "");
  EXPECT_EQ(driver.rules().front(), "a weight=8 iops=100");
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "a", .words = {"operations=", "min=2MiB/s"}}), "");
  EXPECT_EQ(driver.rules().front(), "a weight=8 min=2MiB/s");
  EXPECT_EQ(driver.refusal(ChangeRule{.name = "a", .words = {"weight=0"}}), "weight: '0' is wrong");
  EXPECT_THAT(driver.refusal(ChangeRule{.name = "a"}), HasSubstr("no word"));
  EXPECT_EQ(driver.rules().front(), "a weight=8 min=2MiB/s");
}

TEST(RuleBook, AnUnknownNameIsNotFoundAndTheNearestIsProposed) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("weekly")), "");
  const auto stopped = driver.run(StopRule{"weekyl"});
  EXPECT_EQ(stopped.error().code, ProblemCode::not_found);
  EXPECT_EQ(stopped.error().text, "there is no rule 'weekyl'; did you mean 'weekly'?");
  EXPECT_EQ(driver.refusal(ChangeRule{.name = "climat", .words = {"weight=1"}}),
            "NAME: there is no rule 'climat'; did you mean 'climate'?");
  EXPECT_EQ(driver.refusal(StopRule{"quite other"}), "NAME: there is no rule 'quite other'");
}

TEST(RuleBook, TheShareOfAFileRuleIsChangedUntilTheChangeIsStopped) {
  BookDriver driver;
  const auto changed = driver.run(ChangeRule{.name = "climate", .words = {"weight=8"}});
  ASSERT_TRUE(changed);
  ASSERT_EQ(changed->differences.size(), 1U);
  EXPECT_EQ(changed->differences[0].after, "climate: weight=8");
  EXPECT_EQ(driver.share_of("climate").weight, 8U);
  EXPECT_EQ(driver.rules().front(), "climate weight=8");
  EXPECT_EQ(driver.composed().config.rules.front().origin, RuleOrigin::administrator);
  EXPECT_EQ(driver.refusal(ChangeRule{.name = "climate", .words = {"rate=5MiB/s"}}), "");
  EXPECT_EQ(driver.share_of("climate").weight, 8U);
  EXPECT_EQ(driver.share_of("climate").rate.count, 5 * kMiB);

  EXPECT_EQ(driver.refusal(StopRule{"climate"}), "");
  EXPECT_EQ(driver.share_of("climate").weight, 2U);
  EXPECT_EQ(driver.composed().config.rules.front().origin, RuleOrigin::file);
  EXPECT_EQ(driver.refusal(StopRule{"climate"}),
            "NAME: 'climate' is the configuration file's: edit the file and reload");
}

TEST(RuleBook, AChangeMayTakeAWordOfTheFileAway) {
  BookDriver driver;
  driver.file.virtual_pfs[0].share.rate = {7 * kMiB};
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "climate", .words = {"rate=none"}}), "");
  EXPECT_EQ(driver.share_of("climate").rate.count, 0U);
  EXPECT_EQ(driver.share_of("climate").weight, 2U);
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "climate", .words = {"rate=1KiB/s"}}), "");
  EXPECT_EQ(driver.share_of("climate").rate.count, kKiB);
}

TEST(RuleBook, ChangingAFileRuleThatSendsToAVirtualPfsChangesThatAndSaysSo) {
  BookDriver driver;
  const auto changed = driver.run(ChangeRule{.name = "nightly", .words = {"weight=3"}});
  ASSERT_TRUE(changed);
  EXPECT_THAT(changed->warnings, ElementsAre(HasSubstr("the virtual PFS 'bulk'")));
  EXPECT_EQ(driver.share_of("bulk").weight, 3U);
  EXPECT_EQ(driver.refusal(StopRule{"nightly"}), "");
  EXPECT_EQ(driver.share_of("bulk").weight, 1U);
}

TEST(RuleBook, DefaultIsChangedButNeverStopped) {
  BookDriver driver;
  EXPECT_THAT(driver.refusal(StopRule{"default"}), HasSubstr("cannot be stopped"));
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "default", .words = {"weight=9"}}), "");
  EXPECT_EQ(driver.share_of("default").weight, 9U);
  EXPECT_EQ(driver.refusal(StopRule{"default"}), "");
  EXPECT_THAT(driver.refusal(StopRule{"default"}), HasSubstr("cannot be stopped"));
}

TEST(RuleBook, OnlyTheShareOfAFileRuleIsChangedLive) {
  BookDriver driver;
  EXPECT_EQ(driver.refusal(ChangeRule{.name = "climate", .words = {"mode=shadow"}}),
            "mode: is not a word of a share");
  EXPECT_EQ(driver.refusal(ChangeRule{.name = "climate", .words = {"weight=x"}}),
            "weight: 'x' is wrong");
}

TEST(RuleBook, ARuleEndsByItselfWhenItsTimeIsOver) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a", {"weight=4", "for=2h"})), "");
  EXPECT_EQ(driver.rules().front(), "a weight=4");
  EXPECT_EQ(driver.book.next_deadline(), at(7200));
  EXPECT_THAT(driver.advance(7199), IsEmpty());
  EXPECT_THAT(driver.advance(1), ElementsAre("the rule 'a' has ended"));
  EXPECT_EQ(driver.rules().front(), "climate weight=2");
  EXPECT_EQ(driver.book.next_deadline(), std::nullopt);
}

TEST(RuleBook, ChangingTheTimeStartsTheClockAnew) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a", {"for=1h"})), "");
  (void)driver.advance(1800);
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "a", .words = {"weight=2"}}), "");
  EXPECT_EQ(driver.book.next_deadline(), at(3600)) << "other words leave the clock alone";
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "a", .words = {"for=1h"}}), "");
  EXPECT_EQ(driver.book.next_deadline(), at(5400));
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "a", .words = {"for=none"}}), "");
  EXPECT_EQ(driver.book.next_deadline(), std::nullopt);
  EXPECT_THAT(driver.refusal(ChangeRule{.name = "a", .words = {"for=0s"}}),
              HasSubstr("over already"));
}

TEST(RuleBook, TheChangeOfAShareEndsByItselfToo) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "climate", .words = {"weight=8", "for=2h"}}), "");
  EXPECT_EQ(driver.share_of("climate").weight, 8U);
  EXPECT_THAT(driver.advance(7200), ElementsAre("the share of 'climate' is as before again"));
  EXPECT_EQ(driver.share_of("climate").weight, 2U);
}

TEST(RuleBook, ARuleThatAnotherOneSendsToIsNotStopped) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a", {"weight=4"})), "");
  ASSERT_EQ(driver.refusal(start_rule("b", {"vpfs=a"})), "");
  EXPECT_EQ(driver.refusal(StopRule{"a"}),
            "NAME: the rule 'b' sends to it (vpfs=a): stop that one first");
  EXPECT_THAT(driver.refusal(ChangeRule{.name = "a", .words = {"weight=none", "vpfs=bulk"}}),
              HasSubstr("the rule 'b' sends to it"));
  EXPECT_EQ(driver.refusal(StopRule{"b"}), "");
  EXPECT_EQ(driver.refusal(StopRule{"a"}), "");
  EXPECT_EQ(driver.refusal(start_rule("c", {"vpfs=a"})), "vpfs: 'a' is not declared");
}

TEST(RuleBook, BypassIsOnUntilItsEndOrOff) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(SetBypass{.on = true, .until = at(60)}), "");
  EXPECT_TRUE(driver.book.state().bypass.on);
  EXPECT_EQ(driver.book.state().bypass.by, driver.who);
  EXPECT_THAT(driver.advance(60), ElementsAre("bypass is off again"));
  EXPECT_FALSE(driver.book.state().bypass.on);
  ASSERT_EQ(driver.refusal(SetBypass{.on = true}), "");
  EXPECT_THAT(driver.advance(1'000'000), IsEmpty());
  ASSERT_EQ(driver.refusal(SetBypass{.on = false}), "");
  EXPECT_FALSE(driver.book.state().bypass.on);
  EXPECT_THAT(driver.refusal(SetBypass{.on = true, .until = at(0)}), HasSubstr("over already"));
}

TEST(RuleBook, EachChangeOfTheSetIsAVersionWithItsCommand) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a", {"weight=4", "for=90min"}, "jobid={a b}&op=read")), "");
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "a", .words = {"weight=8"}}), "");
  driver.who = "bob";
  (void)driver.advance(60);
  ASSERT_EQ(driver.refusal(StopRule{"a"}), "");
  const auto history = driver.book.history();
  ASSERT_EQ(history.size(), 3U);
  EXPECT_EQ(history[0].version, 1U);
  EXPECT_EQ(history[0].command, "rule start a 'jobid={a b}&op=read' weight=4 for=1.5h");
  EXPECT_EQ(history[1].command, "rule change a weight=8");
  EXPECT_EQ(history[2].command, "rule stop a");
  EXPECT_EQ(history[2].who, "bob");
  EXPECT_EQ(history[2].at, at(60));
  const auto changed = driver.book.differences_of(2);
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].kind, Difference::Kind::changed);
  EXPECT_EQ(changed[0].before, "a 'jobid={a b}&op=read' weight=4, until 2027-01-15 09:30:00 UTC");
}

TEST(RuleBook, RollbackMakesAVersionAgain) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a")), "");
  ASSERT_EQ(driver.refusal(start_rule("b")), "");
  ASSERT_EQ(driver.refusal(Rollback{1}), "");
  EXPECT_EQ(driver.rules().front(), "a");
  EXPECT_EQ(driver.book.state().version, 3U);
  ASSERT_EQ(driver.refusal(Rollback{2}), "");
  EXPECT_EQ(driver.rules().front(), "b");
  ASSERT_EQ(driver.refusal(Rollback{0}), "");
  EXPECT_EQ(driver.rules().size(), 2U);
  EXPECT_EQ(driver.refusal(Rollback{9}),
            "VERSION: version 9 is not in the history (it has 1 to 5)");
  EXPECT_EQ(driver.refusal(Rollback{5}), "VERSION: version 5 is in force");
}

TEST(RuleBook, RollbackLeavesOutWhatHasEndedAndRefusesWhatIsWrongNow) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("short", {"for=1h"})), "");
  ASSERT_EQ(driver.refusal(start_rule("long")), "");
  ASSERT_EQ(driver.refusal(StopRule{"long"}), "");
  (void)driver.advance(3600);
  const auto back = driver.run(Rollback{2});
  ASSERT_TRUE(back);
  EXPECT_THAT(back->warnings, ElementsAre("the rule 'short' does not come back: its time is over"));
  EXPECT_EQ(driver.rules().front(), "long");
  ASSERT_EQ(driver.refusal(StopRule{"long"}), "");
  driver.file.rules.push_back({.name = "long", .virtual_pfs = "bulk"});
  EXPECT_EQ(driver.refusal(Rollback{2}),
            "long.NAME: the configuration file has a rule of this name too");
}

TEST(RuleBook, TheHistoryIsBounded) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a")), "");
  for (int weight = 1; weight <= 250; ++weight) {
    ASSERT_EQ(
        driver.refusal(ChangeRule{.name = "a", .words = {"weight=" + std::to_string(weight)}}), "");
  }
  const auto history = driver.book.history();
  EXPECT_EQ(history.size(), kMostHistory);
  EXPECT_EQ(history.front().version, 152U);
  EXPECT_EQ(driver.book.differences_of(152).front().before, "a uid=7 weight=150");
  EXPECT_EQ(driver.refusal(Rollback{152}), "");
  EXPECT_EQ(driver.book.state().history.size(), kMostHistory + 1);
}

TEST(RuleBook, AClockThatIsWrongByManyYearsChangesNothing) {
  BookDriver driver;
  for (const std::int64_t seconds : {-1LL, 6'000'000'000LL}) {
    driver.now = WallTime(std::chrono::seconds(seconds));
    EXPECT_THAT(driver.refusal(start_rule("a")), HasSubstr("the clock of this host is wrong"));
  }
}

TEST(RuleBook, ASetThatWaitsLongerThanTheHistoryReachesStillGoesBack) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("old")), "");
  ApplySet many;
  for (int rule = 1; rule <= 150; ++rule) {
    many.rules.push_back(
        {.text = {.name = "r" + std::to_string(rule), .condition = "uid=1"}, .until = at(rule)});
  }
  ASSERT_EQ(driver.refusal(many, at(1000)), "");
  for (int second = 0; second < 150; ++second) (void)driver.advance(1);
  EXPECT_EQ(driver.rules().size(), 2U);
  EXPECT_EQ(driver.replayed().state(), driver.book.state());
  EXPECT_THAT(driver.advance(1000),
              ElementsAre("the applied set was not confirmed: back to version 1"));
  EXPECT_EQ(driver.rules().front(), "old");
  EXPECT_EQ(driver.book.state().history.size(), kMostHistory + 1);
}

TEST(RuleBook, AReplayedJournalIsTheSameBook) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a", {"weight=4", "for=2h"})), "");
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "climate", .words = {"weight=8"}}), "");
  ASSERT_EQ(driver.refusal(SetBypass{.on = true, .until = at(9000)}), "");
  (void)driver.advance(8000);
  EXPECT_EQ(driver.replayed().state(), driver.book.state());
  RuleBook from_snapshot(&plain_rule);
  ASSERT_TRUE(from_snapshot.replay(driver.book.snapshot()));
  EXPECT_EQ(from_snapshot.state(), driver.book.state());
}

TEST(RuleBook, AReplayWithAGapIsRefused) {
  BookDriver driver;
  for (const char* name : {"a", "b", "c"}) ASSERT_EQ(driver.refusal(start_rule(name)), "");
  RuleBook again(&plain_rule);
  ASSERT_TRUE(again.replay(driver.journal[0]));
  const BookState before = again.state();
  EXPECT_EQ(again.replay(driver.journal[2]).error(), "operation 2 is missing: this is number 3");
  EXPECT_EQ(again.replay(driver.journal[0]).error(), "operation 2 is missing: this is number 1");
  EXPECT_EQ(again.replay(driver.book.snapshot()).error(),
            "a snapshot may be only at the beginning");
  EXPECT_EQ(again.state(), before);
}

TEST(RuleBook, AReplayOfWhatCannotBeIsRefused) {
  RuleBook book(&plain_rule);
  const BookOperation stop = {.at = at(0), .who = "eve", .what = StopRule{"a"}};
  EXPECT_EQ(book.replay(*to_record(stop, 1)).error(), "there is no live rule 'a'");
  EXPECT_EQ(book.state(), BookState{});
}

}  // namespace
}  // namespace vpfs::stage
