#include "base/pipe.h"

#include <gtest/gtest.h>

#include "test/support/start_time.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;
using test::kStart;

TEST(Pipe, OneAmountPassesAfterTheOther) {
  Pipe pipe(1000);
  EXPECT_EQ(pipe.pass(100, kStart), kStart + 100ms);
  EXPECT_EQ(pipe.pass(100, kStart + 50ms), kStart + 200ms);
  EXPECT_EQ(pipe.pass(0, kStart), kStart + 200ms);
  EXPECT_EQ(pipe.pass(1, kStart, 10ms), kStart + 211ms);
  EXPECT_EQ(pipe.pass(1, kStart + 1s), kStart + 1001ms) << "idle time is not saved up";
}

TEST(Pipe, PartsOfANanosecondAddUp) {
  Pipe pipe(3'000'000'000);
  TimePoint end;
  for (int i = 0; i < 3'000'000; ++i) end = pipe.pass(1, kStart);
  EXPECT_EQ(end, kStart + 1ms);
}

TEST(Pipe, ItIsExactForTheLargestRatesAndAmounts) {
  Pipe pipe(Pipe::kMostPerSecond);
  EXPECT_EQ(pipe.pass(std::uint64_t{1} << 60, kStart), kStart + 1024s);
  Pipe slow(1);
  EXPECT_EQ(slow.pass(std::uint64_t{1} << 30, kStart), kStart + std::chrono::seconds(1 << 30));
}

TEST(Pipe, AnotherRateKeepsWhatIsOnItsWay) {
  Pipe pipe(3);
  EXPECT_EQ(pipe.pass(1, kStart), kStart + 333'333'333ns);
  pipe.set_rate(6);
  EXPECT_EQ(pipe.pass(1, kStart), kStart + 500ms) << "with the part of a nanosecond";
  Pipe other(6);
  (void)other.pass(4, kStart);
  EXPECT_TRUE(pipe.is_free_before(other));
  EXPECT_FALSE(other.is_free_before(pipe));
}

}  // namespace
}  // namespace vpfs
