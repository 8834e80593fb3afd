#include "control/admin/history_file.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "control/insight/past.h"
#include "test/control/admin/admin_rig.h"
#include "test/stage/history/activities.h"

namespace vpfs::control {
namespace {

using nlohmann::json;
using stage::Activities;
using stage::History;
using stage::HistoryReading;
using stage::Measure;
using std::chrono::hours;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HistoryFileTest : public ::testing::Test {
 protected:
  HistoryFileTest() { begin(); }

  // As after a restart.
  void begin() {
    history_ = std::make_unique<History>();
    file_ = std::make_unique<HistoryFile>(std::make_unique<MemoryStore>(stored_));
    notes_.clear();
    const auto loaded = file_->load(*history_, activities_.now(), notes_);
    problem_ = loaded ? "" : loaded.error().message;
  }
  void run(int count) {
    for (int i = 0; i < count; ++i) {
      activities_.moves(job_, 1000);
      activities_.end_second(*history_);
      file_->keep(*history_);
    }
  }
  void end() {
    history_->end_minute();
    file_->keep(*history_);
  }
  [[nodiscard]] insight::Past past() const {
    return insight::past_of(*history_, activities_.now() - hours(25), activities_.now());
  }
  static HistoryReading job() {
    HistoryReading made;
    made.id = {.app = AppId{7}, .generation = 1};
    auto declared = std::make_shared<stage::VirtualPfsConfig>();
    declared->share = {.weight = 3, .rate = {5000}, .min = {100}};
    auto info = std::make_shared<stage::VirtualPfsInfo>();
    info->name = "job-4711";
    info->declared = std::move(declared);
    info->job_uid = 1001;
    made.info = std::move(info);
    made.rule = std::make_shared<const std::string>("jobs");
    made.jobid = "4711";
    return made;
  }

  HistoryReading job_ = job();
  Activities activities_;
  MemoryStore::Contents stored_;
  std::unique_ptr<History> history_;
  std::unique_ptr<HistoryFile> file_;
  std::vector<std::string> notes_;
  std::string problem_;
};

TEST_F(HistoryFileTest, AllThatIsKnownOfAVirtualPfsComesBack) {
  activities_.set_rules(5);
  run(150);
  end();
  begin();
  EXPECT_EQ(problem_, "");
  const insight::Past past = this->past();
  EXPECT_EQ(past.length, seconds(150));
  EXPECT_EQ(past.last_rules, 5U);
  EXPECT_EQ(past.cost, 150'000U);
  ASSERT_EQ(past.of.size(), 1U);
  const insight::PastOf& who = past.of[0];
  EXPECT_EQ(who.name, "job-4711");
  EXPECT_EQ(who.jobid, "4711");
  EXPECT_EQ(who.job_uid, 1001U);
  EXPECT_EQ(who.share.weight, 3U);
  EXPECT_EQ(who.share.rate.count, 5000U);
  EXPECT_EQ(who.share.min.count, 100U);
  EXPECT_EQ(who.rules, std::vector<std::string>{"jobs"});
  EXPECT_NEAR(static_cast<double>(who.sums.of(Measure::read_bytes)), 150'000, 150);
}

TEST_F(HistoryFileTest, AMinuteIsStoredWhenItEndsAndTheRestAtTheEnd) {
  run(59);
  EXPECT_THAT(stored_.records, IsEmpty());
  run(2);
  EXPECT_THAT(stored_.records, SizeIs(1));
  begin();  // killed
  EXPECT_EQ(past().length, seconds(60));
}

TEST_F(HistoryFileTest, RestartsAddUp) {
  for (int i = 0; i < 5; ++i) {
    run(30);
    end();
    begin();
  }
  EXPECT_EQ(past().length, seconds(150));
  EXPECT_EQ(past().of.size(), 1U);
}

TEST_F(HistoryFileTest, WhatIsOlderThanADayIsLeftOut) {
  run(120);
  end();
  for (int i = 0; i < 25 * 3600; ++i) activities_.end_second(*history_);
  begin();
  EXPECT_EQ(past().length, Duration::zero());
}

TEST_F(HistoryFileTest, AFullDiskLosesNothing) {
  run(60);
  stored_.fails = true;
  run(120);
  EXPECT_THAT(stored_.records, SizeIs(1));
  stored_.fails = false;
  run(60);
  begin();
  EXPECT_EQ(past().length, seconds(240));
}

TEST_F(HistoryFileTest, AFileThatIsLongIsWrittenAnew) {
  run(180);
  stored_.wants_replacing = true;
  run(60);
  EXPECT_THAT(stored_.records, SizeIs(1));
  begin();
  EXPECT_EQ(past().length, seconds(240));
}

TEST_F(HistoryFileTest, AFileThatWasRemovedIsWrittenAnew) {
  run(180);
  stored_.is_gone = true;
  stored_.records.clear();
  run(60);
  begin();
  EXPECT_EQ(past().length, seconds(240));
}

TEST_F(HistoryFileTest, OtherContentsAreAnErrorWithItsPlace) {
  run(60);
  const std::string good = stored_.records[0];
  for (const std::string& bad :
       {std::string("{}"), std::string("[1]"), std::string("4711"), good.substr(0, 30),
        std::string(R"({"v":1,"minutes":[{"begin":"now"}]})"),
        std::string(R"({"v":2,"minutes":{"x":3}})"),
        std::string(R"({"v":2,"minutes":[{"begin":1,"end":2,"length_us":3,"rules":0,"cost":0,)"
                    R"("virtual_pfs":[],"others":[1,2,3]}]})")}) {
    stored_.records = {bad};
    begin();
    EXPECT_THAT(problem_, HasSubstr("journal: holds no minutes of a history: ")) << bad;
  }
  stored_.records = {R"({"v":3,"minutes":[]})"};
  begin();
  EXPECT_EQ(problem_, "journal: is of version 3, and this program knows 2: move the file away");
}

TEST_F(HistoryFileTest, AFileOfVersionOneHasNoTimesOfKeptSlots) {
  run(60);
  json old = json::parse(stored_.records[0]);
  old["v"] = 1;
  for (json& minute : old["minutes"]) {
    const auto drop = [](json& sums) {
      sums.erase(std::to_underlying(Measure::held_by_kept_slot));
    };
    drop(minute["others"]);
    for (json& row : minute["virtual_pfs"]) drop(row["sums"]);
  }
  begin();
  const insight::Past as_written = past();
  stored_.records = {old.dump()};
  begin();
  EXPECT_EQ(problem_, "");
  ASSERT_EQ(past().of.size(), as_written.of.size());
  for (std::size_t i = 0; i < as_written.of.size(); ++i) {
    EXPECT_EQ(past().of[i].sums, as_written.of[i].sums);
  }
}

TEST_F(HistoryFileTest, NumbersThatNoHistoryHasAreBounded) {
  stored_.records = {
      R"({"v":1,"minutes":[{"begin":-5,"end":9223372036854775807,"length_us":18446744073709551615,)"
      R"("rules":0,"cost":18446744073709551615,"virtual_pfs":[],)"
      R"("others":[18446744073709551615,0,0,0,0,0,0,0,0,0,0,0,0,0]}]})"};
  begin();
  EXPECT_EQ(problem_, "");
  EXPECT_FALSE(past().of.size() > 0);
}

TEST_F(HistoryFileTest, ANameThatIsNotUtf8IsKept) {
  auto info = std::make_shared<stage::VirtualPfsInfo>(*job_.info);
  info->name = "job-\xff";
  job_.info = std::move(info);
  run(60);
  begin();
  EXPECT_EQ(problem_, "");
  EXPECT_EQ(past().of.size(), 1U);
}

}  // namespace
}  // namespace vpfs::control
