#include "control/coordinator/led_stages.h"

#include <gtest/gtest.h>

namespace vpfs::coordinator {
namespace {

TEST(LedStages, AStageThatWasSentNoCycleIsForgottenWhenItLeaves) {
  LedStages led;
  led.joined(1);
  EXPECT_TRUE(led.contains(1)) << "it may be sent one at any time";
  led.left(1, false);
  EXPECT_EQ(led.size(), 0U);
}

TEST(LedStages, AStageThatWasSentACycleIsKnownWhenItComesBack) {
  LedStages led;
  led.joined(1);
  led.left(1, true);
  EXPECT_TRUE(led.contains(1));
  led.joined(1);
  led.left(1, false);
  EXPECT_TRUE(led.contains(1)) << "the cycle was sent on the connection before";
}

TEST(LedStages, TwoConnectionsOfOneProcessBothHaveToEnd) {
  LedStages led;
  led.joined(1);
  led.joined(1);
  led.left(1, false);
  EXPECT_TRUE(led.contains(1));
  led.left(1, false);
  EXPECT_FALSE(led.contains(1));
}

TEST(LedStages, ThoseThatLeftLongAgoAreForgottenAndConnectedOnesNever) {
  LedStages led(2);
  led.joined(100);
  for (const std::uint64_t incarnation : {1U, 2U, 3U}) {
    led.joined(incarnation);
    led.left(incarnation, true);
  }
  EXPECT_FALSE(led.contains(1));
  EXPECT_TRUE(led.contains(2) && led.contains(3) && led.contains(100));
  led.joined(2);
  led.joined(4);
  led.left(4, true);
  led.joined(5);
  led.left(5, true);
  EXPECT_FALSE(led.contains(3));
  EXPECT_TRUE(led.contains(2)) << "it is connected again";
  EXPECT_EQ(led.size(), 4U);
}

}  // namespace
}  // namespace vpfs::coordinator
