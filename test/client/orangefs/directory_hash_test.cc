#include "client/orangefs/directory_hash.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace vpfs::client {
namespace {

std::string hex_md5(std::string_view text) {
  std::string hex;
  for (const std::byte each : md5(std::as_bytes(std::span(text)))) {
    hex += fmt::format("{:02x}", std::to_integer<unsigned>(each));
  }
  return hex;
}

TEST(Md5, GivesTheDigestsOfItsRfc) {
  EXPECT_EQ(hex_md5(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(hex_md5("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(hex_md5("12345678901234567890123456789012345678901234567890123456789012345678901234567"
                    "890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(DirdataOf, UsesTheLowestLevelWhoseBucketIsActive) {
  orangefs::DistributedDirectory directory;
  directory.tree_height = 2;
  directory.bitmap = {0b0111};  // three of four
  directory.dirdata_handles = {10, 11, 12, 13};
  int seen[4] = {};
  for (int i = 0; i < 200; ++i) ++seen[dirdata_of(directory, fmt::format("file{}", i)) - 10];
  EXPECT_GT(seen[0], 0);
  EXPECT_GT(seen[2], 0);
  EXPECT_GT(seen[1], seen[0]);  // takes the names of the bucket that is not active
  EXPECT_EQ(seen[3], 0);
}

TEST(DirdataOf, ASingleObjectHoldsAllNames) {
  orangefs::DistributedDirectory directory;
  directory.bitmap = {1};
  directory.dirdata_handles = {42};
  EXPECT_EQ(dirdata_of(directory, "any"), 42U);
}

}  // namespace
}  // namespace vpfs::client
