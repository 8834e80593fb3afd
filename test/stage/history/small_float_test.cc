#include "stage/history/small_float.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace vpfs::stage {
namespace {

TEST(SmallFloat, NumbersBelow2048AreExact) {
  for (std::uint64_t value = 0; value < 2048; ++value) {
    EXPECT_EQ(SmallFloat(value).value(), value);
  }
}

TEST(SmallFloat, LargerNumbersAreAtMostAPartOf2048Off) {
  for (std::uint64_t value = 2048; value < std::numeric_limits<std::uint64_t>::max() / 17;
       value += value / 17 + 1) {
    const std::uint64_t back = SmallFloat(value).value();
    const std::uint64_t off = back > value ? back - value : value - back;
    EXPECT_LE(off, value / 2048) << value;
  }
}

TEST(SmallFloat, ALargerNumberIsNeverMadeSmaller) {
  std::uint64_t before = 0;
  for (std::uint64_t value = 1; value < std::numeric_limits<std::uint64_t>::max() / 2;
       value += value / 5000 + 1) {
    const std::uint64_t back = SmallFloat(value).value();
    EXPECT_GE(back, before) << value;
    before = back;
  }
}

TEST(SmallFloat, TheLargestNumberIsTheLargestThatItHas) {
  const std::uint64_t most = SmallFloat(std::numeric_limits<std::uint64_t>::max()).value();
  EXPECT_GT(most, std::numeric_limits<std::uint64_t>::max() / 2048 * 2047);
  EXPECT_EQ(SmallFloat(most).value(), most);
}

}  // namespace
}  // namespace vpfs::stage
