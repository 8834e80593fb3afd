#include "control/election/tenure.h"

#include <chrono>

#include <gtest/gtest.h>

namespace vpfs::election {
namespace {

using namespace std::chrono_literals;

TimePoint after(Duration since) {
  return TimePoint(1000s) + since;
}

TEST(TenureTest, AConfirmationCountsFromWhenItBegan) {
  Tenure tenure(8s, after(0s));
  EXPECT_EQ(tenure.end(), after(7s));
  tenure.asks(after(2s));
  EXPECT_EQ(tenure.end(), after(7s)) << "it has not succeeded yet";
  tenure.is_confirmed();
  EXPECT_EQ(tenure.end(), after(9s));
  EXPECT_EQ(tenure.next_confirmation(), after(2s) + Duration(8s) / 3);
}

TEST(TenureTest, TwoConfirmationsMayFail) {
  Tenure tenure(6s, after(0s));
  tenure.asks(after(2s));
  EXPECT_LT(tenure.next_confirmation(), tenure.end());
  tenure.asks(after(4s));
  EXPECT_LT(after(4s), tenure.end());
  EXPECT_GE(tenure.next_confirmation(), tenure.end());
}

}  // namespace
}  // namespace vpfs::election
