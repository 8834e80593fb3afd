#include "stage/service_speed.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;

TEST(ServiceSpeed, IsNotKnownBeforeASpanHasEnded) {
  ServiceSpeed speed;
  speed.look(TimePoint{} + 5s);
  speed.done(kGiB);
  speed.look(TimePoint{} + 5s + 999ms);
  EXPECT_EQ(speed.speed(), 0U);
  EXPECT_EQ(speed.longest_delay(kGiB), ServiceSpeed::kShortest);
}

TEST(ServiceSpeed, AHeldFlowGetsAFortiethOfTheServer) {
  ServiceSpeed speed;
  speed.look(TimePoint{});
  speed.done(80 * kMiB);
  speed.look(TimePoint{} + 2s);
  EXPECT_EQ(speed.speed(), 40 * kMiB);
  EXPECT_EQ(speed.longest_delay(2 * kMiB), 2s);
  EXPECT_EQ(speed.longest_delay(kMiB), 1s);
  EXPECT_EQ(speed.longest_delay(64 * kKiB), ServiceSpeed::kShortest);
  EXPECT_EQ(speed.longest_delay(kGiB), ServiceSpeed::kLongest);
  EXPECT_EQ(speed.longest_delay(std::uint64_t{1} << 40), ServiceSpeed::kLongest);
}

TEST(ServiceSpeed, OneIdleSpanDoesNotLookLikeASlowServer) {
  ServiceSpeed speed;
  speed.look(TimePoint{});
  speed.done(40 * kMiB);
  speed.look(TimePoint{} + 1s);
  speed.look(TimePoint{} + 2s);
  EXPECT_EQ(speed.speed(), 40 * kMiB);
  speed.done(kMiB);
  speed.look(TimePoint{} + 3s);
  EXPECT_EQ(speed.speed(), kMiB);
}

}  // namespace
}  // namespace vpfs::stage
