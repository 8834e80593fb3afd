#include "control/site/kept.h"

#include <string>

#include <gtest/gtest.h>

#include "test/support/manual_clock.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;

class KeptTest : public ::testing::Test {
 protected:
  // How often it was made when this one was.
  int get(Duration takes) {
    return kept_.get(clock_, [&] {
      clock_.set(clock_.now() + takes);
      return ++made_;
    });
  }
  void pass(Duration time) { clock_.set(clock_.now() + time); }

  test::ManualClock clock_{TimePoint(100s)};
  Kept<int> kept_;
  int made_ = 0;
};

TEST_F(KeptTest, ItIsKeptForThreeTimesAsLongAsItTook) {
  EXPECT_EQ(get(10ms), 1);
  EXPECT_EQ(get(10ms), 1);
  pass(30ms - 1ns);
  EXPECT_EQ(get(10ms), 1);
  pass(1ns);
  EXPECT_EQ(get(20ms), 2);
  pass(59ms);
  EXPECT_EQ(get(20ms), 2);
}

TEST_F(KeptTest, WhatTakesNoTimeIsMadeEachTime) {
  EXPECT_EQ(get(0s), 1);
  EXPECT_EQ(get(0s), 2);
}

TEST_F(KeptTest, WhatHasChangedIsMadeAnew) {
  EXPECT_EQ(get(1s), 1);
  kept_.forget();
  EXPECT_EQ(get(1s), 2);
  EXPECT_EQ(get(1s), 2);
}

}  // namespace
}  // namespace vpfs::coordinator
