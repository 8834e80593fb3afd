#include "proxy/open_file_users.h"

#include <gtest/gtest.h>

namespace vpfs::proxy {
namespace {

TEST(OpenFileUsers, TheOnlyUserOfAFileIsKnown) {
  OpenFileUsers users;
  const std::uint64_t file = OpenFileUsers::key(7, "1A#5-68A-1");
  EXPECT_EQ(users.only_user(file), std::nullopt);
  users.saw(file, 1001);
  users.saw(file, 1001);
  EXPECT_EQ(users.only_user(file), 1001U);
  EXPECT_EQ(users.only_user(OpenFileUsers::key(8, "1A#5-68A-1")), std::nullopt) << "another node";
}

TEST(OpenFileUsers, AFileOfSeveralUsersTellsNothing) {
  OpenFileUsers users;
  const std::uint64_t file = OpenFileUsers::key(7, "f");
  users.saw(file, 1001);
  users.saw(file, 1002);
  EXPECT_EQ(users.only_user(file), std::nullopt);
  users.saw(file, 1001);
  EXPECT_EQ(users.only_user(file), std::nullopt);
}

TEST(OpenFileUsers, FilesInUseOutliveAFloodOfOthers) {
  OpenFileUsers users;
  const std::uint64_t file = OpenFileUsers::key(7, "used");
  const std::uint64_t idle = OpenFileUsers::key(7, "idle");
  users.saw(file, 1001);
  users.saw(idle, 1002);
  for (std::uint32_t i = 0; i < 300'000; ++i) {
    users.saw(OpenFileUsers::key(i, "flood"), 5);
    if (i % 1000 == 0) {
      ASSERT_EQ(users.only_user(file), 1001U);
    }
  }
  EXPECT_EQ(users.only_user(idle), std::nullopt) << "forgotten";
}

}  // namespace
}  // namespace vpfs::proxy
