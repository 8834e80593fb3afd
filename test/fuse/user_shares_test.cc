#include "fuse/user_shares.h"

#include <gtest/gtest.h>

namespace vpfs::fuse {
namespace {

std::size_t take_all(UserShares& shares, uid_t user) {
  std::size_t count = 0;
  for (; shares.room_for(user) > 0; ++count) shares.take(user, 1);
  return count;
}

TEST(UserShares, OneUserGetsHalfAndEachLaterOneHalfOfTheRest) {
  UserShares shares(1024);
  EXPECT_EQ(take_all(shares, 1), 512U);
  EXPECT_EQ(take_all(shares, 2), 256U);
  EXPECT_EQ(take_all(shares, 3), 128U);
  EXPECT_GT(shares.room_for(4), 0U);
}

TEST(UserShares, UsersThatTakeInTurnGetTheSame) {
  UserShares shares(300);
  for (bool more = true; more;) {
    more = false;
    for (const uid_t user : {1U, 2U}) {
      if (shares.room_for(user) == 0) continue;
      shares.take(user, 1);
      more = true;
    }
  }
  EXPECT_EQ(shares.taken_by(1), 100U);
  EXPECT_EQ(shares.taken_by(2), 100U);
}

TEST(UserShares, WhatIsGivenBackMayBeTakenAgain) {
  UserShares shares(8);
  EXPECT_EQ(take_all(shares, 1), 4U);
  shares.give_back(1, 4);
  EXPECT_EQ(shares.taken(), 0U);
  EXPECT_EQ(take_all(shares, 2), 4U);
}

TEST(UserShares, WhatWasTakenRegardlessLeavesNoRoom) {
  UserShares shares(8);
  shares.take(1, 10);
  EXPECT_EQ(shares.room_for(1), 0U);
  EXPECT_EQ(shares.room_for(2), 0U);
  shares.give_back(1, 10);
  EXPECT_EQ(shares.room_for(2), 8U);
}

}  // namespace
}  // namespace vpfs::fuse
