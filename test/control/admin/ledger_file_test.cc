#include "control/admin/ledger_file.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/control/admin/admin_rig.h"

namespace vpfs::control {
namespace {

using insight::Spell;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LedgerFileTest : public ::testing::Test {
 protected:
  LedgerFileTest() { begin(); }

  // As after a restart.
  void begin() {
    ledger_ = std::make_unique<LedgerFile>(std::make_unique<MemoryStore>(stored_));
    std::vector<std::string> notes;
    const auto loaded = ledger_->load(now_, notes);
    problem_ = loaded ? "" : loaded.error().message;
  }
  Spell spell(const std::string& name) const {
    Spell made;
    made.cause = Spell::Cause::traffic_class;
    made.name = name;
    made.jobid = "4711";
    made.job_uid = 1001;
    made.rule = "jobs";
    made.rate = 5000;
    made.rules = 7;
    made.begin = now_ - seconds(60);
    made.end = now_;
    made.held = milliseconds(30'500);
    made.bytes = 123'456;
    made.operations = 78;
    made.longest_wait = milliseconds(250);
    made.account = "physics";
    made.loans = {.lent = 3000, .borrowed = 40};
    return made;
  }
  void add(int count) {
    std::vector<Spell> spells;
    for (int i = 0; i < count; ++i) spells.push_back(spell("job-" + std::to_string(i)));
    ledger_->add(std::move(spells), now_);
  }

  MemoryStore::Contents stored_;
  WallTime now_ = at(0);
  std::unique_ptr<LedgerFile> ledger_;
  std::string problem_;
};

TEST_F(LedgerFileTest, AllOfASpellComesBack) {
  add(1);
  begin();
  ASSERT_THAT(ledger_->spells(), SizeIs(1));
  const Spell& back = ledger_->spells()[0];
  const Spell was = spell("job-0");
  EXPECT_EQ(back.cause, was.cause);
  EXPECT_EQ(back.name, was.name);
  EXPECT_EQ(back.jobid, was.jobid);
  EXPECT_EQ(back.job_uid, was.job_uid);
  EXPECT_EQ(back.rule, was.rule);
  EXPECT_EQ(back.rate, was.rate);
  EXPECT_EQ(back.rules, was.rules);
  EXPECT_EQ(back.begin, was.begin);
  EXPECT_EQ(back.end, was.end);
  EXPECT_EQ(back.held, was.held);
  EXPECT_EQ(back.bytes, was.bytes);
  EXPECT_EQ(back.operations, was.operations);
  EXPECT_EQ(back.longest_wait, was.longest_wait);
  EXPECT_EQ(back.account, was.account);
  EXPECT_EQ(back.loans, was.loans);
}

TEST_F(LedgerFileTest, EachCauseComesBack) {
  std::vector<Spell> spells;
  for (const auto cause : {Spell::Cause::limit, Spell::Cause::traffic_class, Spell::Cause::loans}) {
    spells.push_back(spell("job-1"));
    spells.back().cause = cause;
  }
  ledger_->add(spells, now_);
  begin();
  ASSERT_THAT(ledger_->spells(), SizeIs(2));
  EXPECT_EQ(ledger_->spells()[0].cause, Spell::Cause::limit);
  EXPECT_EQ(ledger_->spells()[1].cause, Spell::Cause::traffic_class);
  ASSERT_THAT(ledger_->loans(), SizeIs(1));
  EXPECT_EQ(ledger_->loans()[0].cause, Spell::Cause::loans);
}

TEST_F(LedgerFileTest, ARecordOfVersionOneHasNoLoans) {
  stored_.records = {
      R"({"v":1,"spells":[{"cause":"class","name":"a","begin":0,"end":1700000000,"held_us":1,)"
      R"("bytes":2,"operations":3,"longest_wait_us":4,"rules":5}]})"};
  now_ = WallTime(seconds(1'700'000'001));
  begin();
  EXPECT_EQ(problem_, "");
  ASSERT_THAT(ledger_->spells(), SizeIs(1));
  EXPECT_EQ(ledger_->spells()[0].cause, Spell::Cause::traffic_class);
  EXPECT_EQ(ledger_->spells()[0].loans, Loans());
}

TEST_F(LedgerFileTest, ADayIsKept) {
  add(3);
  now_ += hours(23);
  add(2);
  EXPECT_THAT(ledger_->spells(), SizeIs(5));
  now_ += hours(2);
  ledger_->add({}, now_);
  EXPECT_THAT(ledger_->spells(), SizeIs(2));
  begin();
  EXPECT_THAT(ledger_->spells(), SizeIs(2));
}

TEST_F(LedgerFileTest, HasABound) {
  add(static_cast<int>(LedgerFile::kMost));
  add(1);
  EXPECT_THAT(ledger_->spells(), SizeIs(LedgerFile::kMost));
  begin();
  EXPECT_THAT(ledger_->spells(), SizeIs(LedgerFile::kMost));
}

TEST_F(LedgerFileTest, LoansDoNotPushOutWhatLimitsHeld) {
  add(3);
  std::vector<Spell> loans(LedgerFile::kMost + 5, spell("job-1"));
  for (Spell& each : loans) each.cause = Spell::Cause::loans;
  ledger_->add(std::move(loans), now_);
  EXPECT_THAT(ledger_->spells(), SizeIs(3));
  EXPECT_THAT(ledger_->loans(), SizeIs(LedgerFile::kMost));
  begin();
  EXPECT_THAT(ledger_->spells(), SizeIs(3));
  EXPECT_THAT(ledger_->loans(), SizeIs(LedgerFile::kMost));
}

TEST_F(LedgerFileTest, NothingIsWrittenIfNothingHasEnded) {
  ledger_->add({}, now_);
  EXPECT_THAT(stored_.records, IsEmpty());
}

TEST_F(LedgerFileTest, AFullDiskLosesNothing) {
  stored_.fails = true;
  add(3);
  const std::size_t tried = stored_.tried;
  for (int i = 0; i < 9; ++i) ledger_->add({}, now_);
  EXPECT_EQ(stored_.tried, tried) << "it is still full";
  stored_.fails = false;
  ledger_->add({}, now_);
  add(2);
  begin();
  EXPECT_THAT(ledger_->spells(), SizeIs(5));
}

TEST_F(LedgerFileTest, TheLastCallOfAProgramIsTriedInAnyCase) {
  stored_.fails = true;
  add(3);
  stored_.fails = false;
  ledger_->hurry();
  add(2);
  begin();
  EXPECT_THAT(ledger_->spells(), SizeIs(5));
}

TEST_F(LedgerFileTest, WithoutRoomForASecondFileTheFirstOneGrows) {
  add(3);
  stored_.wants_replacing = true;
  stored_.has_room_for_another = false;
  add(2);
  begin();
  EXPECT_THAT(ledger_->spells(), SizeIs(5));
}

TEST_F(LedgerFileTest, AFileThatIsLongOrGoneIsWrittenAnew) {
  add(3);
  stored_.wants_replacing = true;
  add(2);
  EXPECT_THAT(stored_.records, SizeIs(1));
  stored_.wants_replacing = false;
  stored_.is_gone = true;
  stored_.records.clear();
  add(1);
  begin();
  EXPECT_THAT(ledger_->spells(), SizeIs(6));
}

TEST_F(LedgerFileTest, OtherContentsAreAnErrorWithTheirPlace) {
  for (const std::string bad :
       {"{}", "[]", "7", R"({"v":1,"spells":[{"cause":"limit"}]})", R"({"v":1,"minutes":[]})"}) {
    stored_.records = {bad};
    begin();
    EXPECT_THAT(problem_, HasSubstr("journal: holds no entries of a ledger: ")) << bad;
  }
  stored_.records = {R"({"v":9,"spells":[]})"};
  begin();
  EXPECT_THAT(problem_, HasSubstr("is of version 9"));
}

TEST_F(LedgerFileTest, WithoutAFileItEndsWithTheProgram) {
  LedgerFile ledger;
  std::vector<std::string> notes;
  EXPECT_TRUE(ledger.load(now_, notes));
  ledger.add({spell("x")}, now_);
  EXPECT_THAT(ledger.spells(), SizeIs(1));
}

}  // namespace
}  // namespace vpfs::control
