#include "stage/read_yield.h"

#include <gtest/gtest.h>

namespace vpfs::stage {
namespace {

TEST(ReadYield, FollowsWhatReadsHaveGiven) {
  constexpr Bytes kAsked = {10 * kMiB};
  ReadYield yield;
  EXPECT_EQ(yield.expected(kAsked), kAsked);
  for (int i = 0; i < 60; ++i) yield.learn(kAsked, {4096});
  EXPECT_LE(yield.expected(kAsked), Bytes{16 * kKiB});
  for (int i = 0; i < 100; ++i) yield.learn(kAsked, kAsked);
  EXPECT_EQ(yield.expected(kAsked), kAsked);
}

}  // namespace
}  // namespace vpfs::stage
