#include "protocols/orangefs/floor_sum.h"

#include <random>

#include <gtest/gtest.h>

namespace vpfs::orangefs {
namespace {

void expect_sums(std::uint64_t count, std::uint64_t step, std::uint64_t start,
                 std::uint64_t divisor) {
  FloorSums counted;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Wide q = (Wide{step} * i + start) / divisor;
    counted.q += q;
    counted.twice_i_q += 2 * i * q;
    counted.q_squared += q * q;
  }
  const FloorSums found = floor_sums(count, step, start, divisor);
  EXPECT_TRUE(found.q == counted.q && found.twice_i_q == counted.twice_i_q &&
              found.q_squared == counted.q_squared)
      << count << " " << step << " " << start << " " << divisor;
}

TEST(FloorSum, SmallProgressionsGiveWhatAddingGives) {
  for (std::uint64_t count = 0; count < 8; ++count) {
    for (std::uint64_t step = 0; step < 8; ++step) {
      for (std::uint64_t start = 0; start < 8; ++start) {
        for (std::uint64_t divisor = 1; divisor < 8; ++divisor) {
          expect_sums(count, step, start, divisor);
        }
      }
    }
  }
}

TEST(FloorSum, LargeNumbersGiveWhatAddingGives) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    expect_sums(random() % 500, random() >> (1 + random() % 62), random() >> (1 + random() % 62),
                1 + (random() >> (2 + random() % 60)));
  }
}

}  // namespace
}  // namespace vpfs::orangefs
