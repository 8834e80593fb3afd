#include "proxy/open_file_users.h"

#include <gtest/gtest.h>

namespace vpfs::proxy {
namespace {

std::uint64_t key(std::uint32_t node, std::string_view file, const char* address = "10.0.0.1") {
  return OpenFileUsers::key(stage::Address::parse(address).value(), node, file);
}

TEST(OpenFileUsers, TheOnlyUserOfAFileIsKnown) {
  OpenFileUsers users;
  const std::uint64_t file = key(7, "1A#5-68A-1");
  EXPECT_EQ(users.only_user(file), std::nullopt);
  users.saw(file, 1001);
  users.saw(file, 1001);
  EXPECT_EQ(users.only_user(file), 1001U);
  EXPECT_EQ(users.only_user(key(8, "1A#5-68A-1")), std::nullopt) << "another node";
  for (const char* address : {"10.0.0.2", "10.0.1.1", "fd00::1"}) {
    EXPECT_EQ(users.only_user(key(7, "1A#5-68A-1", address)), std::nullopt) << address;
  }
}

TEST(OpenFileUsers, AFileOfSeveralUsersTellsNothing) {
  OpenFileUsers users;
  const std::uint64_t file = key(7, "f");
  users.saw(file, 1001);
  users.saw(file, 1002);
  EXPECT_EQ(users.only_user(file), std::nullopt);
  users.saw(file, 1001);
  EXPECT_EQ(users.only_user(file), std::nullopt);
}

TEST(OpenFileUsers, FilesInUseOutliveAFloodOfOthers) {
  OpenFileUsers users;
  const std::uint64_t file = key(7, "used");
  const std::uint64_t idle = key(7, "idle");
  users.saw(file, 1001);
  users.saw(idle, 1002);
  for (std::uint32_t i = 0; i < 300'000; ++i) {
    users.saw(key(i, "flood"), 5);
    if (i % 1000 == 0) {
      ASSERT_EQ(users.only_user(file), 1001U);
    }
  }
  EXPECT_EQ(users.only_user(idle), std::nullopt) << "forgotten";
}

// Even if the used entries alone fill it.
TEST(RecentMap, IsBoundedWhateverIsUsed) {
  RecentMap<int> map(1);
  std::uint64_t fresh = 0;
  const auto entries = [&map] {
    std::size_t count = 0;
    map.for_each([&](std::uint64_t, int) { ++count; });
    return count;
  };
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 16 * 8192; ++i) map.change(fresh++, [](int&) {});
    for (std::uint64_t key = 0; key < fresh; ++key) (void)map.find(key);
  }
  EXPECT_LE(entries(), 2U * 16 * 8192);
  EXPECT_GT(entries(), 16U * 8192);
}

}  // namespace
}  // namespace vpfs::proxy
