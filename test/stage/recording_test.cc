#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/recorder/recorder.h"
#include "test/stage/stage_rig.h"

namespace vpfs::stage {
namespace {

using std::chrono::milliseconds;
using testing::SizeIs;

class RecordingTest : public StageRig {
 protected:
  RecordingTest() {
    Config config;
    config.scheduler.depth.requests = 1;
    make(config);
    now_ += milliseconds(1);
    stage_->record(&recorder_);
  }
  std::vector<Recorded> recorded() const {
    std::vector<Recorded::Words> words;
    (void)recorder_.ring().read(0, 100, words);
    std::vector<Recorded> all;
    for (const Recorded::Words& each : words) all.push_back(Recorded::from(each).value());
    return all;
  }

  Recorder recorder_{{.number = 3, .requests = 100, .begin = TimePoint(milliseconds(1))}};
};

TEST_F(RecordingTest, ARequestIsThereWithItsTimesAndWhatHeldIt) {
  Held& first = arrive(find({}));
  (void)let_go();
  Held& second = arrive(find({}));
  second.source = {.recording = 3, .origin = 2, .uid = 1001, .file = 77, .offset = 4096};
  now_ += milliseconds(10);
  end(first);
  (void)let_go();
  now_ += milliseconds(5);
  end(second);
  const std::vector<Recorded> all = recorded();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].reason, RecordedReason::nothing);
  EXPECT_EQ(all[0].wait, 0U);
  EXPECT_EQ(all[0].service, Recorded::ticks(milliseconds(10)));
  EXPECT_EQ(all[0].origin, Recorder::kOther);
  EXPECT_EQ(all[0].uid, Recorded::kNoUser);
  EXPECT_EQ(all[1].reason, RecordedReason::depth);
  EXPECT_EQ(all[1].arrival_ns, (now_ - milliseconds(15) - TimePoint(milliseconds(1))).count());
  EXPECT_EQ(all[1].wait, Recorded::ticks(milliseconds(10)));
  EXPECT_EQ(all[1].service, Recorded::ticks(milliseconds(5)));
  EXPECT_EQ(all[1].asked, kSize);
  EXPECT_EQ(all[1].moved, kSize);
  EXPECT_EQ(all[1].origin, 2U);
  EXPECT_EQ(all[1].uid, 1001U);
  EXPECT_EQ(all[1].file, 77U);
  EXPECT_EQ(all[1].offset, 4096U);
  EXPECT_EQ(all[1].end, RecordedEnd::done);
  EXPECT_EQ(recorder_.names()[all[1].virtual_pfs], "default");
}

TEST_F(RecordingTest, EveryEndIsThereOnce) {
  Held& failed = arrive(find({}));
  (void)let_go();
  Held& refused = arrive(find({}));
  Held& abandoned = arrive(find({}));
  now_ += milliseconds(10);
  EXPECT_TRUE(stage_->refuse(refused, now_));
  stage_->abandon(abandoned, now_);
  stage_->abandon(abandoned, now_);
  stage_->end(failed, {.moved = {0}, .failed = true}, now_);
  const std::vector<Recorded> all = recorded();
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[0].end, RecordedEnd::refused);
  EXPECT_EQ(all[0].reason, RecordedReason::depth);
  EXPECT_EQ(all[0].wait, Recorded::ticks(milliseconds(10)));
  EXPECT_EQ(all[0].service, 0U);
  EXPECT_EQ(all[1].end, RecordedEnd::abandoned);
  EXPECT_EQ(all[2].end, RecordedEnd::failed);
}

TEST_F(RecordingTest, ASlotThatIsGivenUpIsNotAnEnd) {
  Held& io = arrive(find({}));
  (void)let_go();
  now_ += milliseconds(10);
  EXPECT_TRUE(stage_->give_up_slot(io, now_));
  EXPECT_THAT(recorded(), SizeIs(0));
  now_ += milliseconds(10);
  end(io);
  ASSERT_THAT(recorded(), SizeIs(1));
  EXPECT_EQ(recorded()[0].service, Recorded::ticks(milliseconds(20)));
}

TEST_F(RecordingTest, WhatWasSaidForAnEarlierRecordingIsForgotten) {
  Held& io = arrive(find({}));
  io.source = {.recording = 2, .origin = 5, .uid = 7, .file = 9, .offset = 11};
  (void)let_go();
  end(io);
  ASSERT_THAT(recorded(), SizeIs(1));
  EXPECT_EQ(recorded()[0].origin, Recorder::kOther);
  EXPECT_EQ(recorded()[0].file, 0U);
}

TEST_F(RecordingTest, ARequestThatWaitedBeforeItBeganHasNoReason) {
  stage_->record(nullptr);
  Held& first = arrive(find({}));
  (void)let_go();
  Held& second = arrive(find({}));
  now_ += milliseconds(1);
  stage_->record(&recorder_);
  now_ += milliseconds(1);
  end(first);
  (void)let_go();
  end(second);
  ASSERT_THAT(recorded(), SizeIs(2));
  EXPECT_EQ(recorded()[1].reason, RecordedReason::nothing);
  EXPECT_EQ(recorded()[1].wait, Recorded::ticks(milliseconds(2)));
}

TEST_F(RecordingTest, ARequestThatIsLetPassWasHeldUntilThen) {
  (void)arrive(find({}));
  (void)let_go();
  Held& second = arrive(find({}));
  now_ += milliseconds(10);
  stage_->let_pass(second, now_);
  (void)let_go();
  now_ += milliseconds(1);
  end(second);
  ASSERT_THAT(recorded(), SizeIs(1));
  EXPECT_EQ(recorded()[0].reason, RecordedReason::depth);
  EXPECT_EQ(recorded()[0].wait, Recorded::ticks(milliseconds(10)));
  EXPECT_FALSE(recorded()[0].unscheduled);
}

TEST_F(RecordingTest, WhatNothingCouldHoldSaysSo) {
  stage_->bypass(true, now_);
  Held& io = arrive(find({}));
  (void)let_go();
  end(io);
  ASSERT_THAT(recorded(), SizeIs(1));
  EXPECT_TRUE(recorded()[0].unscheduled);
}

TEST_F(RecordingTest, NothingIsWrittenAfterItHasEnded) {
  Held& io = arrive(find({}));
  (void)let_go();
  stage_->record(nullptr);
  end(io);
  EXPECT_THAT(recorded(), SizeIs(0));
}

}  // namespace
}  // namespace vpfs::stage
