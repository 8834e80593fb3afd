#include "control/allocation/cap_ledger.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/control/allocation/largest.h"

namespace vpfs::allocation {
namespace {

using testing::ElementsAre;

std::vector<std::uint64_t> rationed(std::uint64_t free, const std::vector<std::uint64_t>& wanted) {
  std::vector<std::uint64_t> given(wanted.size(), 99);
  ration(free, wanted, given);
  return given;
}

TEST(Ration, AllGetWhatTheyWantIfThereIsEnough) {
  EXPECT_THAT(rationed(10, {3, 0, 7}), ElementsAre(3, 0, 7));
  EXPECT_THAT(rationed(11, {3, 0, 7}), ElementsAre(3, 0, 7));
  EXPECT_THAT(rationed(0, {}), ElementsAre());
}

TEST(Ration, TooLittleIsDividedInProportionToTheLastUnit) {
  EXPECT_THAT(rationed(5, {3, 0, 7}), ElementsAre(2, 0, 3));
  EXPECT_THAT(rationed(2, {1, 1, 1}), ElementsAre(1, 1, 0));
  EXPECT_THAT(rationed(0, {3, 0, 7}), ElementsAre(0, 0, 0));
}

TEST(Ration, LargeAmountsDoNotOverflow) {
  const auto given = rationed(kLargest - 1, {kLargest, kLargest, kLargest - 5});
  EXPECT_EQ(given[0] + given[1] + given[2], kLargest - 1);
  EXPECT_NEAR(static_cast<double>(given[2]), static_cast<double>(kLargest) / 3, 1e6);
}

TEST(CapLedger, ACapCountsFromWhenItIsSentUntilALaterOneIsSettled) {
  CapLedger ledger;
  ledger.resize(2);
  ledger.send(0, 70);
  EXPECT_EQ(ledger.sum(), 70U);
  ledger.settle(0);
  ledger.send(0, 30);
  EXPECT_EQ(ledger.own(0), 70U);
  ledger.settle(0);
  EXPECT_EQ(ledger.own(0), 30U);
  ledger.send(0, 90);
  EXPECT_EQ(ledger.own(0), 90U);
  ledger.withdraw(0);
  EXPECT_EQ(ledger.own(0), 30U);
  ledger.send(0, kNoCap);
  ledger.settle(0);
  EXPECT_EQ(ledger.own(0), 0U);
}

TEST(CapLedger, CapsOfFormerProcessesCountBeside) {
  CapLedger ledger;
  ledger.resize(1);
  ledger.send(0, 70);
  ledger.leave_open(0);
  ledger.make_stale(0);
  EXPECT_EQ(ledger.own(0), 0U);
  EXPECT_EQ(ledger.sum(), 70U);
  ledger.send(0, 20);
  ledger.leave_open(0);
  ledger.make_stale(0);
  EXPECT_EQ(ledger.sum(), 90U);
  ledger.release_stale(0);
  EXPECT_EQ(ledger.sum(), 0U);
}

TEST(CapLedger, TheSumStaysAtTheLargestNumber) {
  CapLedger ledger;
  ledger.resize(2);
  ledger.send(0, kLargest - 1);
  ledger.send(1, kLargest - 1);
  EXPECT_EQ(ledger.sum(), kLargest);
}

}  // namespace
}  // namespace vpfs::allocation
