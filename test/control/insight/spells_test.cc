#include "control/insight/spells.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::insight {
namespace {

using stage::Activity;
using stage::Measure;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SpellWatchTest : public ::testing::Test {
 protected:
  SpellWatchTest() { give(5000); }

  void give(std::uint64_t rate) {
    auto declared = std::make_shared<stage::VirtualPfsConfig>();
    declared->share.rate = {rate};
    auto info = std::make_shared<stage::VirtualPfsInfo>();
    info->name = "job-1";
    info->declared = std::move(declared);
    reading_.info = std::move(info);
    reading_.limit = {rate};
    reading_.jobid = "1";
    reading_.rule = std::make_shared<const std::string>("jobs");
  }
  // Seconds in which the limit, or other classes, held it for so long, and 1,000 bytes went.
  void run(int count, Duration limit, Duration other_classes = {}) {
    for (int i = 0; i < count; ++i) {
      Activity activity = {.reading = &reading_, .measures = {}};
      activity.measures.of(Measure::read_bytes) = 1000;
      activity.measures.of(Measure::operations) = 1;
      activity.measures.of(Measure::held_by_limit) = microseconds_of(limit);
      activity.measures.of(Measure::held_by_class) = microseconds_of(other_classes);
      activity.measures.of(Measure::longest_wait) = microseconds_of(limit);
      second({activity});
    }
  }
  void second(const std::vector<Activity>& activities) {
    const WallTime end = now_ + seconds(1);
    watch_.add({.begin = now_, .end = end, .length = seconds(1), .rules = 3}, activities, ended_);
    now_ = end;
  }
  void idle(int count) {
    for (int i = 0; i < count; ++i) second({});
  }

  stage::HistoryReading reading_;
  SpellWatch watch_;
  std::vector<Spell> ended_;
  WallTime now_{seconds(1000)};
};

TEST_F(SpellWatchTest, ASpellIsOneEntryHoweverLongItIs) {
  run(600, milliseconds(700));
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_THAT(watch_.open(), SizeIs(1));
  idle(SpellWatch::kQuiet + 1);
  ASSERT_THAT(ended_, SizeIs(1));
  const Spell& spell = ended_[0];
  EXPECT_EQ(spell.name, "job-1");
  EXPECT_EQ(spell.jobid, "1");
  EXPECT_EQ(spell.rule, "jobs");
  EXPECT_EQ(spell.rate, 5000U);
  EXPECT_EQ(spell.rules, 3U);
  EXPECT_EQ(spell.cause, Spell::Cause::limit);
  EXPECT_EQ(spell.begin, WallTime(seconds(1000)));
  EXPECT_EQ(spell.end, WallTime(seconds(1600)));
  EXPECT_EQ(spell.held, 600 * milliseconds(700));
  EXPECT_EQ(spell.bytes, 600'000U);
  EXPECT_EQ(spell.operations, 600U);
  EXPECT_EQ(spell.longest_wait, milliseconds(700));
  EXPECT_THAT(watch_.open(), IsEmpty());
}

TEST_F(SpellWatchTest, LittleIsNotASpell) {
  run(100, milliseconds(99));
  idle(10);
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(SpellWatchTest, AShortPauseDoesNotEndItAndALongOneDoes) {
  run(10, milliseconds(500));
  run(SpellWatch::kQuiet, {});
  run(10, milliseconds(500));
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_EQ(watch_.open()[0].bytes, 25'000U);
  run(SpellWatch::kQuiet + 1, {});
  ASSERT_THAT(ended_, SizeIs(1));
  EXPECT_EQ(ended_[0].end - ended_[0].begin, seconds(25));
  EXPECT_EQ(ended_[0].bytes, 25'000U) << "what follows is not a part of it";
  run(10, milliseconds(500));
  EXPECT_THAT(watch_.open(), SizeIs(1));
}

TEST_F(SpellWatchTest, BothCausesHaveSpellsOfTheirOwn) {
  run(10, milliseconds(500), milliseconds(300));
  EXPECT_THAT(watch_.open(), SizeIs(2));
  watch_.end_all(ended_);
  EXPECT_THAT(ended_, SizeIs(2));
  EXPECT_THAT(watch_.open(), IsEmpty());
}

TEST_F(SpellWatchTest, AnotherShareBeginsAnother) {
  run(10, milliseconds(500));
  give(9000);
  run(10, milliseconds(500));
  ASSERT_THAT(ended_, SizeIs(1));
  EXPECT_EQ(ended_[0].rate, 5000U);
  EXPECT_EQ(watch_.open()[0].rate, 9000U);
}

TEST_F(SpellWatchTest, TwoRulesThatSendToOneVirtualPfsMakeOneSpell) {
  const auto first = reading_.rule;
  const auto second = std::make_shared<const std::string>("other");
  for (int i = 0; i < 10; ++i) {
    reading_.rule = i % 2 == 0 ? first : second;
    run(1, milliseconds(500));
  }
  EXPECT_THAT(ended_, IsEmpty());
  ASSERT_THAT(watch_.open(), SizeIs(1));
  EXPECT_EQ(watch_.open()[0].rule, *first);
  EXPECT_EQ(watch_.open()[0].held, milliseconds(5000));
}

TEST_F(SpellWatchTest, ACoordinatorsLimitIsNamedWhereItIsTheLowerOne) {
  reading_.limit = {2000};
  run(10, milliseconds(500));
  EXPECT_EQ(watch_.open()[0].rate, 2000U);
}

TEST_F(SpellWatchTest, NoRateIsNamedWhereOperationsAreLimitedToo) {
  auto declared = std::make_shared<stage::VirtualPfsConfig>();
  declared->share.rate = {5000};
  declared->share.operations = 10;
  auto info = std::make_shared<stage::VirtualPfsInfo>(*reading_.info);
  info->declared = std::move(declared);
  reading_.info = std::move(info);
  run(10, milliseconds(500));
  EXPECT_EQ(watch_.open()[0].rate, 0U);
}

TEST_F(SpellWatchTest, ANumberThatIsUsedAgainHasASpellOfItsOwn) {
  run(10, milliseconds(500));
  ++reading_.id.generation;
  run(10, milliseconds(500));
  EXPECT_THAT(ended_, SizeIs(1));
  EXPECT_EQ(ended_[0].bytes, 10'000U);
  EXPECT_EQ(watch_.open()[0].bytes, 10'000U);
}

TEST_F(SpellWatchTest, LoansThatGoOnAreEntriesOfTenMinutes) {
  for (int i = 0; i < 3600; ++i) {
    second({{.reading = &reading_, .measures = {}, .loans = {.lent = 2, .borrowed = 1}}});
  }
  ASSERT_THAT(ended_, SizeIs(6));
  for (const Spell& each : ended_) {
    EXPECT_EQ(each.end - each.begin, SpellWatch::kLongestLoans);
    EXPECT_EQ(each.loans, (Loans{.lent = 1200, .borrowed = 600}));
  }
}

TEST_F(SpellWatchTest, LoansAreASpellOfTheirOwnWithTheirSums) {
  const auto lend = [&](int count, Loans loans) {
    for (int i = 0; i < count; ++i) {
      second({{.reading = &reading_, .measures = {}, .loans = loans}});
    }
  };
  reading_.account = "physics";
  lend(10, {.lent = 100, .borrowed = 0});
  idle(SpellWatch::kQuiet);
  lend(10, {.lent = 0, .borrowed = 7});
  EXPECT_THAT(ended_, IsEmpty());
  idle(SpellWatch::kQuiet + 1);
  ASSERT_THAT(ended_, SizeIs(1));
  EXPECT_EQ(ended_[0].cause, Spell::Cause::loans);
  EXPECT_EQ(ended_[0].account, "physics");
  EXPECT_EQ(ended_[0].loans, (Loans{.lent = 1000, .borrowed = 70}));
  EXPECT_EQ(ended_[0].end - ended_[0].begin, seconds(20 + SpellWatch::kQuiet));
  Activity held = {.reading = &reading_, .measures = {}, .loans = {.lent = 5, .borrowed = 0}};
  held.measures.of(Measure::held_by_limit) = microseconds_of(milliseconds(700));
  second({held});
  ASSERT_THAT(watch_.open(), SizeIs(2));
  EXPECT_EQ(watch_.open()[0].cause, Spell::Cause::limit);
  EXPECT_EQ(watch_.open()[0].loans, Loans()) << "they count once";
  EXPECT_EQ(watch_.open()[1].loans.lent, 5U);
}

}  // namespace
}  // namespace vpfs::insight
