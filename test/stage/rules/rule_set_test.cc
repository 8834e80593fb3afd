// Sets of rules that are applied at once, and their confirmation.
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
using testing::Not;

ApplySet set_of_rules(std::vector<RuleText> rules) {
  ApplySet apply;
  for (RuleText& rule : rules) apply.rules.push_back({.text = std::move(rule)});
  return apply;
}

TEST(ApplySet, TheWholeSetOfTheAdministratorsIsReplaced) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("c")), "");
  ASSERT_EQ(driver.refusal(start_rule("b", {"weight=2"})), "");
  ASSERT_EQ(driver.refusal(start_rule("a", {"weight=4"})), "");
  ASSERT_EQ(driver.refusal(
                StartJob{.job = {.jobid = "4711", .clients = {"10.0.0.1"}}, .words = {"weight=3"}}),
            "");
  (void)driver.advance(10);
  const auto applied = driver.run(
      set_of_rules({{"c", "uid=7", {}}, {"a", "uid=7", {"weight=5"}}, {"d", "uid=9", {}}}));
  ASSERT_TRUE(applied);
  std::vector<std::string> lines;
  for (const Difference& each : applied->differences) {
    lines.push_back(std::string(name_of(each.kind)) + " " + each.before + " -> " + each.after);
  }
  EXPECT_THAT(lines,
              ElementsAre("removed b uid=7 weight=2 -> ", "moved #3 c uid=7 -> #1 c uid=7",
                          "changed a uid=7 weight=4 -> a uid=7 weight=5", "added  -> d uid=9"));
  EXPECT_THAT(driver.rules(), ElementsAre("c", "a weight=5", "d", "job:4711 weight=3",
                                          "climate weight=2", "nightly vpfs=bulk"));
  EXPECT_EQ(find_rule(driver.book.state(), "c")->since, at(0)) << "it is the same rule";
  EXPECT_EQ(find_rule(driver.book.state(), "a")->since, at(10));
}

TEST(ApplySet, ADryRunShowsTheDifferencesAlone) {
  BookDriver driver;
  const auto prepared = driver.prepare(set_of_rules({{"a", "uid=7", {}}}));
  ASSERT_TRUE(prepared);
  EXPECT_EQ(prepared->differences.size(), 1U);
  EXPECT_EQ(driver.book.state(), BookState{});
}

TEST(ApplySet, TheSameSetAgainIsNotAVersion) {
  BookDriver driver;
  const ApplySet apply = set_of_rules({{"a", "uid=7", {}}});
  ASSERT_EQ(driver.refusal(apply), "");
  ASSERT_EQ(driver.refusal(apply, at(60)), "");
  EXPECT_EQ(driver.book.state().version, 1U);
  EXPECT_EQ(driver.book.state().pending, std::nullopt) << "there is nothing to confirm";
}

TEST(ApplySet, ASetDeclaresVirtualPfsesAndChangesThoseOfTheFile) {
  BookDriver driver;
  ApplySet apply = set_of_rules({{"x", "uid=7", {"vpfs=pool"}},
                                 {"y", "uid=8", {"vpfs=late"}},
                                 {"late", "uid=9", {"weight=6"}},
                                 {"z", "uid=10", {"vpfs=bulk"}}});
  apply.shares = {{.virtual_pfs = "pool", .words = {"weight=5"}},
                  {.virtual_pfs = "climate", .words = {"weight=7"}},
                  {.virtual_pfs = "default", .words = {"rate=1MiB/s"}}};
  ASSERT_EQ(driver.refusal(apply), "");
  EXPECT_EQ(driver.share_of("pool").weight, 5U);
  EXPECT_EQ(driver.share_of("climate").weight, 7U);
  EXPECT_EQ(driver.share_of("default").rate.count, kMiB);
  EXPECT_EQ(driver.rules().front(), "x vpfs=pool");
  EXPECT_THAT(driver.refusal(StopRule{"pool"}), HasSubstr("the rule 'x' sends to it"));
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "pool", .words = {"weight=9"}}), "");
  EXPECT_EQ(driver.share_of("pool").weight, 9U);
  ASSERT_EQ(driver.refusal(ApplySet{}), "");
  EXPECT_EQ(driver.share_of("climate").weight, 2U);
  EXPECT_THAT(driver.rules(), ElementsAre("climate weight=2", "nightly vpfs=bulk"));
}

TEST(ApplySet, OneMistakeRefusesTheSetWithThePlace) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a")), "");
  EXPECT_EQ(driver.refusal(set_of_rules({{"b", "uid=7", {}}, {"c", "uid=7", {"weight=x"}}})),
            "c.weight: 'x' is wrong");
  EXPECT_EQ(driver.refusal(set_of_rules({{"b", "uid=7", {"vpfs=none such"}}})),
            "b.vpfs: 'none such' is not declared");
  EXPECT_EQ(driver.refusal(set_of_rules({{"b", "uid=7", {}}, {"b", "uid=8", {}}})),
            "NAME: 'b' is given twice");
  EXPECT_THAT(driver.refusal(set_of_rules({{"climate", "uid=7", {}}})), HasSubstr("file has"));
  ApplySet wrong_share;
  wrong_share.shares = {{.virtual_pfs = "pool", .words = {"weight=x"}}};
  EXPECT_EQ(driver.refusal(wrong_share), "pool.weight: 'x' is wrong");
  EXPECT_EQ(driver.rules().front(), "a");
}

TEST(ApplySet, ASetThatAJobNeedsIsNotTakenAway) {
  BookDriver driver;
  ApplySet apply;
  apply.shares = {{.virtual_pfs = "pool", .words = {"weight=5"}}};
  ASSERT_EQ(driver.refusal(apply), "");
  ASSERT_EQ(driver.refusal(StartJob{.job = {.jobid = "4711", .clients = {"10.0.0.1"}},
                                    .words = {"vpfs=pool"}}),
            "");
  EXPECT_EQ(driver.refusal(ApplySet{}), "job:4711.vpfs: 'pool' is not declared");
  EXPECT_EQ(driver.share_of("pool").weight, 5U);
}

TEST(ApplySet, ASetThatIsConfirmedStays) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(set_of_rules({{"a", "uid=7", {}}}), at(60)), "");
  EXPECT_EQ(driver.book.next_deadline(), at(60));
  ASSERT_EQ(driver.refusal(Confirm{}), "");
  EXPECT_THAT(driver.advance(1000), IsEmpty());
  EXPECT_EQ(driver.rules().front(), "a");
  EXPECT_EQ(driver.refusal(Confirm{}), ": nothing waits for confirmation");
}

TEST(ApplySet, ASetThatIsNotConfirmedIsGivenUp) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("old")), "");
  ASSERT_EQ(driver.refusal(set_of_rules({{"new", "uid=7", {}}}), at(60)), "");
  EXPECT_EQ(driver.rules().front(), "new");
  EXPECT_THAT(driver.advance(59), IsEmpty());
  EXPECT_THAT(driver.advance(1),
              ElementsAre("the applied set was not confirmed: back to version 1"));
  EXPECT_EQ(driver.rules().front(), "old");
  const auto history = driver.book.history();
  ASSERT_EQ(history.size(), 3U);
  EXPECT_EQ(history[2].command, "not confirmed: back to version 1");
  EXPECT_EQ(history[1].command, "rule apply (1 rules) --confirm 1min");
}

TEST(ApplySet, TheDeadlineHoldsOverARestart) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("old", {"for=30s"})), "");
  ASSERT_EQ(driver.refusal(start_rule("older")), "");
  ASSERT_EQ(driver.refusal(set_of_rules({{"new", "uid=7", {"for=10s"}}}), at(60)), "");
  driver.book = driver.replayed();
  EXPECT_EQ(driver.rules().front(), "new");
  EXPECT_THAT(driver.advance(61),
              ElementsAre("the applied set was not confirmed: back to version 2",
                          "the rule 'new' has ended"));
  EXPECT_THAT(driver.rules(), ElementsAre("older", "climate weight=2", "nightly vpfs=bulk"))
      << "'old' has ended meanwhile";
  EXPECT_EQ(driver.book.expire(driver.now), std::nullopt);
}

TEST(ApplySet, WhileASetWaitsNothingElseOfTheAdministratorsChanges) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("old")), "");
  ASSERT_EQ(driver.refusal(set_of_rules({{"new", "uid=7", {}}}), at(60)), "");
  const auto again = driver.run(set_of_rules({{"other", "uid=7", {}}}));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ProblemCode::unavailable);
  EXPECT_THAT(again.error().text, HasSubstr("the applied set waits for its confirmation until"));
  EXPECT_THAT(driver.refusal(start_rule("b")), HasSubstr("confirm it or roll back first"));
  EXPECT_THAT(driver.refusal(StopRule{"new"}), HasSubstr("waits"));
  EXPECT_THAT(driver.refusal(ChangeRule{.name = "new", .words = {"weight=2"}}), HasSubstr("waits"));
  EXPECT_THAT(driver.refusal(ChangeRule{.name = "climate", .words = {"weight=3"}}),
              HasSubstr("waits"));
  EXPECT_EQ(driver.refusal(StartJob{.job = {.jobid = "1", .clients = {"10.0.0.1"}}}), "");
  ASSERT_EQ(driver.refusal(Rollback{1}), "");
  EXPECT_EQ(driver.book.state().pending, std::nullopt);
  EXPECT_EQ(driver.refusal(start_rule("b")), "");
}

TEST(ApplySet, ItIsTooLateToConfirmAtTheDeadline) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(set_of_rules({{"new", "uid=7", {}}}), at(60)), "");
  driver.now = at(60);
  EXPECT_EQ(driver.refusal(Confirm{}), ": the time to confirm is over");
}

TEST(Confirmation, AStartedRuleThatIsNotConfirmedGoesByItself) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a"), at(60)), "");
  EXPECT_THAT(driver.refusal(start_rule("b")), HasSubstr("waits for its confirmation"));
  EXPECT_EQ(driver.replayed().state(), driver.book.state());
  (void)driver.advance(60);
  EXPECT_THAT(driver.rules(), Not(Contains("a")));
  ASSERT_EQ(driver.refusal(start_rule("b"), at(120)), "");
  ASSERT_EQ(driver.refusal(Confirm{}), "");
  (void)driver.advance(100);
  EXPECT_THAT(driver.rules(), Contains("b"));
}

TEST(Confirmation, AChangeAndAStopGoBackToWhatWas) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a", {"weight=4"})), "");
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "a", .words = {"weight=8"}}, at(10)), "");
  EXPECT_EQ(driver.rules().front(), "a weight=8");
  (void)driver.advance(10);
  EXPECT_EQ(driver.rules().front(), "a weight=4");
  ASSERT_EQ(driver.refusal(StopRule{.name = "a"}, at(20)), "");
  (void)driver.advance(10);
  EXPECT_EQ(driver.rules().front(), "a weight=4");
}

TEST(Confirmation, OnlyTheAdministratorsSetCanWaitForOne) {
  BookDriver driver;
  EXPECT_THAT(driver.refusal(SetBypass{.on = true}, at(60)),
              HasSubstr("only changes of administrators' rules"));
  EXPECT_FALSE(driver.book.state().pending);
}

}  // namespace
}  // namespace vpfs::stage
