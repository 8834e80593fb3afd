#include "stage/history_reading.h"

#include <vector>

#include <gtest/gtest.h>

#include "test/stage/stage_rig.h"

namespace vpfs::stage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class HistoryReadingTest : public StageRig {
 protected:
  HistoryReadingTest() {
    Config config;
    config.scheduler.depth.requests = 1;
    make(config);
  }
  std::vector<HistoryReading> read(TimePoint since) {
    std::vector<HistoryReading> readings;
    stage_->read_history(0, stage_->rows(), since, now_, readings);
    return readings;
  }
};

TEST_F(HistoryReadingTest, HasWhatWasDoneAndForHowLongItWaited) {
  Held& first = arrive(find({}));
  Held& second = arrive(find({}));
  (void)let_go();
  now_ += milliseconds(10);
  end(first);
  (void)let_go();
  now_ += milliseconds(5);
  end(second);
  const std::vector<HistoryReading> readings = read(now_);
  ASSERT_EQ(readings.size(), 1U);
  const HistoryReading& reading = readings[0];
  EXPECT_EQ(reading.info->name, "default");
  EXPECT_EQ(reading.read.count, 2 * kSize);
  EXPECT_EQ(reading.done, 2U);
  EXPECT_EQ(reading.arrived, 2U);
  EXPECT_EQ(reading.cost, 2 * kSize);
  EXPECT_EQ(reading.waited, milliseconds(10));
  EXPECT_EQ(reading.served, milliseconds(15));
  EXPECT_EQ(reading.held.depth, milliseconds(10));
  EXPECT_EQ(reading.longest_wait, milliseconds(10));
}

TEST_F(HistoryReadingTest, TheLongestWaitBeginsAnewAndCountsWhatStillWaits) {
  Held& first = arrive(find({}));
  (void)let_go();
  Held& second = arrive(find({}));
  now_ += milliseconds(7);
  EXPECT_EQ(read(now_).at(0).longest_wait, milliseconds(7));
  end(first);
  (void)let_go();
  EXPECT_EQ(read(now_).at(0).longest_wait, milliseconds(7));
  EXPECT_EQ(read(now_).at(0).longest_wait, Duration::zero());
  end(second);
}

TEST_F(HistoryReadingTest, OneThatIsIdleIsReadUntilItsLastRequestWasSeen) {
  Held& only = arrive(find({}));
  (void)let_go();
  end(only);
  const TimePoint used = now_;
  now_ += seconds(5);
  EXPECT_EQ(read(used).size(), 1U);
  EXPECT_TRUE(read(used + seconds(1)).empty());
}

}  // namespace
}  // namespace vpfs::stage
