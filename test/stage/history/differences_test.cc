#include "stage/history/differences.h"

#include <vector>

#include <gtest/gtest.h>

#include "test/stage/history/activities.h"

namespace vpfs::stage {
namespace {

using std::chrono::milliseconds;

class ReadingDifferencesTest : public ::testing::Test {
 protected:
  HistoryReading reading(std::uint32_t app, std::uint64_t bytes, std::uint32_t generation = 0) {
    HistoryReading made = activities_.reading(app, "", generation);
    made.read = {bytes};
    return made;
  }

  Activities activities_;
  ReadingDifferences differences_;
};

TEST_F(ReadingDifferencesTest, TheFirstReadingShowsNoActivity) {
  EXPECT_TRUE(differences_.since_last(std::vector{reading(1, 500)}).empty());
  const std::vector readings = {reading(1, 700)};
  const std::vector<Activity> made = differences_.since_last(readings);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].measures.of(Measure::read_bytes), 200U);
}

TEST_F(ReadingDifferencesTest, OneThatIsNewHasDoneAllSinceTheReadingBefore) {
  (void)differences_.since_last({});
  const std::vector readings = {reading(3, 700)};
  EXPECT_EQ(differences_.since_last(readings).at(0).measures.of(Measure::read_bytes), 700U);
}

TEST_F(ReadingDifferencesTest, ANumberThatIsUsedAgainBeginsAnew) {
  (void)differences_.since_last({});
  (void)differences_.since_last(std::vector{reading(3, 700)});
  const std::vector readings = {reading(3, 900, 1)};
  EXPECT_EQ(differences_.since_last(readings).at(0).measures.of(Measure::read_bytes), 900U);
}

TEST_F(ReadingDifferencesTest, OneThatDidNothingHasNoRowUnlessItWaits) {
  (void)differences_.since_last(std::vector{reading(1, 500), reading(2, 500)});
  std::vector readings = {reading(1, 500), reading(2, 500)};
  readings[1].queued = {64};
  const std::vector<Activity> made = differences_.since_last(readings);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].measures.of(Measure::queued), 64U);
}

// The time of a head that waits moves from one reason to another when its reason becomes known.
TEST_F(ReadingDifferencesTest, ASumThatShrinksGivesZero) {
  std::vector readings = {reading(1, 500)};
  readings[0].held.depth = milliseconds(800);
  (void)differences_.since_last(readings);
  readings[0].read = {600};
  readings[0].held = {.limit = {}, .share = milliseconds(900), .depth = {}, .traffic_class = {}};
  const Measures measures = differences_.since_last(readings).at(0).measures;
  EXPECT_EQ(measures.of(Measure::held_by_depth), 0U);
  EXPECT_EQ(measures.of(Measure::held_by_share), 900'000U);
}

TEST_F(ReadingDifferencesTest, WaitsThatShrinkHaveBegunAnew) {
  std::vector readings = {reading(1, 500)};
  readings[0].waited = std::chrono::hours(24) * 365 * 1000;
  readings[0].served = milliseconds(700);
  (void)differences_.since_last(readings);
  readings[0].waited += milliseconds(300);
  readings[0].served += milliseconds(10);
  const Measures before = differences_.since_last(readings).at(0).measures;
  EXPECT_EQ(before.of(Measure::waited), 300'000U) << "of a thousand years";
  readings[0].waited = milliseconds(20);
  readings[0].served = milliseconds(30);
  const Measures measures = differences_.since_last(readings).at(0).measures;
  EXPECT_EQ(measures.of(Measure::waited), 20'000U);
  EXPECT_EQ(measures.of(Measure::served), 30'000U);
}

TEST_F(ReadingDifferencesTest, LoansOfAnIdleOneAreAnActivity) {
  std::vector readings = {reading(1, 500)};
  readings[0].loans = {.lent = 100, .borrowed = 30};
  (void)differences_.since_last(readings);
  readings[0].loans.lent = 250;
  EXPECT_EQ(differences_.since_last(readings).at(0).loans, (Loans{.lent = 150, .borrowed = 0}));
  EXPECT_TRUE(differences_.since_last(readings).empty());
  readings[0].loans = {.lent = 20, .borrowed = 1};  // of another scheduler
  EXPECT_EQ(differences_.since_last(readings).at(0).loans, (Loans{.lent = 20, .borrowed = 1}));
}

}  // namespace
}  // namespace vpfs::stage
