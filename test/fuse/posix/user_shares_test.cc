#include "fuse/posix/user_shares.h"

#include <gtest/gtest.h>

namespace vpfs::fuse {
namespace {

std::size_t take_all(UserShares& shares, uid_t user) {
  std::size_t count = 0;
  for (; shares.may_take(user); ++count) shares.take(user);
  return count;
}

TEST(UserShares, OneUserGetsHalfAndEachLaterOneHalfOfTheRest) {
  UserShares shares(1024);
  EXPECT_EQ(take_all(shares, 1), 512U);
  EXPECT_EQ(take_all(shares, 2), 256U);
  EXPECT_EQ(take_all(shares, 3), 128U);
  EXPECT_TRUE(shares.may_take(4));
}

TEST(UserShares, UsersThatTakeInTurnGetTheSame) {
  UserShares shares(300);
  for (bool more = true; more;) {
    more = false;
    for (const uid_t user : {1U, 2U}) {
      if (!shares.may_take(user)) continue;
      shares.take(user);
      more = true;
    }
  }
  EXPECT_EQ(shares.taken_by(1), 100U);
  EXPECT_EQ(shares.taken_by(2), 100U);
  EXPECT_EQ(shares.free(), 100U);
}

TEST(UserShares, WhatIsGivenBackMayBeTakenAgain) {
  UserShares shares(8);
  EXPECT_EQ(take_all(shares, 1), 4U);
  for (int i = 0; i < 4; ++i) shares.give_back(1);
  EXPECT_EQ(shares.taken(), 0U);
  EXPECT_EQ(take_all(shares, 2), 4U);
}

TEST(UserShares, TheOnlyUserOfAMountMayTakeAll) {
  UserShares shares(8, false);
  EXPECT_EQ(take_all(shares, 1), 8U);
}

}  // namespace
}  // namespace vpfs::fuse
