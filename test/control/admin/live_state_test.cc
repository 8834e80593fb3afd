#include "control/admin/live_state.h"

#include <gmock/gmock.h>

#include "test/control/admin/admin_rig.h"

namespace vpfs::control {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LiveStateTest : public ::testing::Test {
 protected:
  std::unique_ptr<LiveState> load(WallTime now) {
    notes_.clear();
    auto live = LiveState::load(std::make_unique<MemoryStore>(journal_), file_, now, notes_);
    EXPECT_TRUE(live) << live.error().message;
    return live ? std::move(*live) : nullptr;
  }
  static stage::BookOperation start(const std::string& name, WallTime when,
                                    const std::vector<std::string>& words = {},
                                    const std::string& condition = "uid=7") {
    return {
        .at = when,
        .who = "ops",
        .what = stage::StartRule{.rule = {.name = name, .condition = condition, .words = words}}};
  }
  static Error::Code run(LiveState& live, stage::BookOperation operation) {
    const auto change = live.prepare(std::move(operation));
    if (!change) return change.error().code();
    const auto done = live.carry_out(*change);
    return done ? Error::UNKNOWN : done.error().code();
  }
  static std::vector<std::string> rules(const LiveState& live) {
    std::vector<std::string> names;
    for (const stage::RuleConfig& rule : live.composed().config.rules) names.push_back(rule.name);
    return names;
  }

  MemoryStore::Contents journal_;
  stage::Config file_ = file_config();
  std::vector<std::string> notes_;
};

TEST_F(LiveStateTest, LiveRulesComeBackFromTheJournalInTheirOrder) {
  auto live = load(at(0));
  EXPECT_EQ(run(*live, start("a", at(1), {"weight=4"})), Error::UNKNOWN);
  EXPECT_EQ(run(*live, start("b", at(2))), Error::UNKNOWN);
  const stage::BookState before = live->book().state();
  live = load(at(3));
  EXPECT_EQ(live->book().state(), before);
  EXPECT_THAT(rules(*live), ElementsAre("b", "a", "job-{jobid}"));
  EXPECT_TRUE(notes_.empty());
}

TEST_F(LiveStateTest, WhatWasNotConfirmedInTimeIsTakenBackByTheLoadAndSaid) {
  auto live = load(at(0));
  ASSERT_EQ(run(*live, start("good", at(1))), Error::UNKNOWN);
  stage::BookOperation bold = start("bold", at(2));
  bold.confirm_by = at(62);
  ASSERT_EQ(run(*live, bold), Error::UNKNOWN);
  EXPECT_THAT(rules(*live), ElementsAre("bold", "good", "job-{jobid}"));

  live = load(at(61));
  EXPECT_THAT(rules(*live), ElementsAre("bold", "good", "job-{jobid}")) << "there is a second left";
  live = load(at(62));
  EXPECT_THAT(rules(*live), ElementsAre("good", "job-{jobid}"));
  EXPECT_THAT(notes_, ElementsAre("version 2 was not confirmed in time: back to version 1"));
  live = load(at(63));
  EXPECT_THAT(rules(*live), ElementsAre("good", "job-{jobid}"));
  EXPECT_TRUE(notes_.empty()) << "it is said once";
}

TEST_F(LiveStateTest, AJournalThatTakesNothingMeansThatNothingIsChanged) {
  auto live = load(at(0));
  ASSERT_EQ(run(*live, start("a", at(1))), Error::UNKNOWN);
  const stage::BookState before = live->book().state();
  journal_.fails = true;
  EXPECT_EQ(run(*live, start("b", at(2))), Error::UNAVAILABLE);
  EXPECT_EQ(live->book().state(), before);
  EXPECT_THAT(rules(*live), ElementsAre("a", "job-{jobid}"));
  journal_.fails = false;
  EXPECT_EQ(run(*live, start("b", at(3))), Error::UNKNOWN);
  EXPECT_EQ(load(at(4))->book().state(), live->book().state());
}

TEST_F(LiveStateTest, AJournalThatWasRemovedIsWrittenAnewBeforeTheNextChange) {
  auto live = load(at(0));
  ASSERT_EQ(run(*live, start("a", at(1))), Error::UNKNOWN);
  journal_.records.clear();
  journal_.is_gone = true;
  ASSERT_EQ(run(*live, start("b", at(2))), Error::UNKNOWN);
  EXPECT_EQ(journal_.replaced, 1U);
  EXPECT_EQ(load(at(3))->book().state(), live->book().state());
}

TEST_F(LiveStateTest, BypassNeedsNoJournal) {
  auto live = load(at(0));
  ASSERT_EQ(run(*live, start("a", at(1))), Error::UNKNOWN);
  journal_.fails = true;
  const auto bypass = [](bool on, WallTime when) {
    return stage::BookOperation{.at = when, .who = "ops", .what = stage::SetBypass{.on = on}};
  };
  EXPECT_EQ(run(*live, bypass(true, at(2))), Error::UNKNOWN);
  EXPECT_TRUE(live->book().state().bypass.on);
  EXPECT_EQ(run(*live, bypass(false, at(3))), Error::UNKNOWN);
  EXPECT_EQ(run(*live, bypass(true, at(4))), Error::UNKNOWN);
  EXPECT_FALSE(load(at(5))->book().state().bypass.on) << "a crash forgets it";
  journal_.fails = false;
  ASSERT_EQ(run(*live, start("b", at(6))), Error::UNKNOWN);
  EXPECT_EQ(load(at(7))->book().state(), live->book().state()) << "it is kept with the next change";
}

TEST_F(LiveStateTest, ABypassThatTheJournalMissesIsKeptByCatchUp) {
  auto live = load(at(0));
  const auto bypass = [](bool on, WallTime when) {
    return stage::BookOperation{.at = when, .who = "ops", .what = stage::SetBypass{.on = on}};
  };
  EXPECT_EQ(run(*live, bypass(true, at(1))), Error::UNKNOWN);
  journal_.fails = true;
  EXPECT_EQ(run(*live, bypass(false, at(2))), Error::UNKNOWN);
  live->catch_up();
  EXPECT_TRUE(live->is_behind());
  journal_.fails = false;
  live->catch_up();
  EXPECT_FALSE(live->is_behind());
  EXPECT_FALSE(load(at(3))->book().state().bypass.on);
}

TEST_F(LiveStateTest, WhatIsDueEndsWithoutTheJournalAndLaterChangesCanBeReplayed) {
  auto live = load(at(0));
  ASSERT_EQ(run(*live, start("short", at(1), {"for=10s"})), Error::UNKNOWN);
  journal_.fails = true;
  EXPECT_TRUE(live->expire(at(11)));
  EXPECT_THAT(rules(*live), ElementsAre("job-{jobid}"));
  EXPECT_EQ(run(*live, start("a", at(12))), Error::UNAVAILABLE);
  EXPECT_FALSE(live->expire(at(12)));

  // A crash now: the next start ends the rule by its own time.
  auto again = load(at(13));
  EXPECT_THAT(rules(*again), ElementsAre("job-{jobid}"));

  journal_.fails = false;
  ASSERT_EQ(run(*live, start("a", at(14))), Error::UNKNOWN);
  ASSERT_EQ(run(*live, start("b", at(15))), Error::UNKNOWN);
  again = load(at(16));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->book().state(), live->book().state());
}

TEST_F(LiveStateTest, AGrownJournalIsReplacedByASnapshotWithTheSameSense) {
  auto live = load(at(0));
  ASSERT_EQ(run(*live, start("a", at(1))), Error::UNKNOWN);
  journal_.wants_replacing = true;
  ASSERT_EQ(run(*live, start("b", at(2))), Error::UNKNOWN);
  EXPECT_EQ(journal_.records.size(), 1U);
  EXPECT_EQ(load(at(3))->book().state(), live->book().state());
}

TEST_F(LiveStateTest, AFileThatALiveRuleDoesNotFitIsRefusedAndChangesNothing) {
  auto live = load(at(0));
  ASSERT_EQ(run(*live, start("night", at(1), {"weight=4"})), Error::UNKNOWN);
  stage::Config clashing = file_config();
  add_rule(clashing, {.name = "night", .condition = "uid=9", .words = {"weight=2"}});
  const Result<void> fits = live->fits(clashing);
  ASSERT_FALSE(fits);
  EXPECT_THAT(fits.error().message, HasSubstr("the live rule night does not fit this file"));
  EXPECT_THAT(rules(*live), ElementsAre("night", "job-{jobid}"));

  stage::Config other = file_config();
  add_rule(other, {.name = "day", .condition = "uid=9", .words = {}});
  ASSERT_TRUE(live->fits(other));
  live->take_on(other);
  EXPECT_THAT(rules(*live), ElementsAre("night", "job-{jobid}", "day"));
}

TEST_F(LiveStateTest, ARuleThatDoesNotFitTheFileAtTheStartIsKeptAsideAndSaid) {
  auto live = load(at(0));
  ASSERT_EQ(run(*live, start("night", at(1))), Error::UNKNOWN);
  add_rule(file_, {.name = "night", .condition = "uid=9", .words = {}});
  live = load(at(2));
  EXPECT_THAT(rules(*live), ElementsAre("job-{jobid}", "night"));
  EXPECT_THAT(notes_, Contains(HasSubstr("rule night is not in force: ")));
  EXPECT_EQ(run(*live, start("new", at(3))), Error::UNKNOWN);
}

TEST_F(LiveStateTest, ADamagedRecordIsAnErrorWithItsPlace) {
  journal_.records = {R"({"v":2,"n":1,"at":1,"who":"x","op":"rule_fly"})"};
  const auto live = LiveState::load(std::make_unique<MemoryStore>(journal_), file_, at(0), notes_);
  ASSERT_FALSE(live);
  EXPECT_THAT(live.error().message, HasSubstr("journal: "));
}

TEST_F(LiveStateTest, WithoutAStoreRulesEndWithTheProgram) {
  auto live = LiveState::load(nullptr, file_, at(0), notes_);
  ASSERT_TRUE(live);
  EXPECT_EQ(run(**live, start("a", at(1), {"for=10s"})), Error::UNKNOWN);
  EXPECT_TRUE((*live)->expire(at(11)));
  EXPECT_THAT(rules(**live), ElementsAre("job-{jobid}"));
}

}  // namespace
}  // namespace vpfs::control
