#include "control/coordinator/links/cycle_times.h"

#include <gtest/gtest.h>

#include "control/site/site_numbers.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;

TEST(RecentCycles, NothingIsKnownBeforeTheFirstCycle) {
  const RecentCycles::Summary summary = RecentCycles().summary();
  EXPECT_EQ(summary.cycles, 0U);
  EXPECT_EQ(summary.kept, 0U);
  EXPECT_EQ(summary.max, 0s);
}

TEST(RecentCycles, QuantilesAreOfTheLastThousandAndSumsOfAll) {
  RecentCycles cycles;
  for (int i = 0; i < 500; ++i) cycles.add({.late = 2, .total = 1h});
  for (int i = 1; i <= 1000; ++i) cycles.add({.total = i * 1us});
  const RecentCycles::Summary summary = cycles.summary();
  EXPECT_EQ(summary.cycles, 1500U);
  EXPECT_EQ(summary.late, 1000U);
  EXPECT_EQ(summary.sum, 500h + 500'500us);
  EXPECT_EQ(summary.kept, 1000U);
  EXPECT_EQ(summary.p50, 500us);
  EXPECT_EQ(summary.p99, 990us);
  EXPECT_EQ(summary.max, 1000us);
}

TEST(RecentCycles, ASingleCycleIsEveryQuantile) {
  RecentCycles cycles;
  cycles.add({.total = 7us});
  EXPECT_EQ(cycles.summary().p50, 7us);
  EXPECT_EQ(cycles.summary().p99, 7us);
}

TEST(GrowingSums, NeverGoDownWhenOwnersStartAnewOrLeave) {
  GrowingSums sums;
  sums.add({{"a", {5, 1, 0}}, {"b", {2, 0, 0}}});
  EXPECT_EQ(sums.sums(), (GrowingSums::Counts{7, 1, 0}));
  sums.add({{"a", {6, 1, 0}}});
  EXPECT_EQ(sums.sums(), (GrowingSums::Counts{8, 1, 0}));
  sums.add({{"a", {2, 1, 0}}, {"b", {2, 0, 0}}});
  EXPECT_EQ(sums.sums(), (GrowingSums::Counts{12, 1, 0})) << "both began anew";
}

}  // namespace
}  // namespace vpfs::coordinator
