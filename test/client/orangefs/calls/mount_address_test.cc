#include "client/orangefs/calls/mount_address.h"

#include <gtest/gtest.h>

namespace vpfs::client {
namespace {

TEST(MountAddress, HasSchemeServerAndFileSystem) {
  const auto plain = parse_mount_address("tcp://127.0.0.1:3334/vpfs");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->scheme, "tcp");
  EXPECT_EQ(plain->host_port, "127.0.0.1:3334");
  EXPECT_EQ(plain->file_system, "vpfs");
}

TEST(MountAddress, KeepsItsZone) {
  const auto zoned = parse_mount_address("tcp-px://[::1]:4334/orangefs");
  ASSERT_TRUE(zoned);
  EXPECT_EQ(zoned->scheme, "tcp-px");
  EXPECT_EQ(zoned->host_port, "[::1]:4334");
}

TEST(MountAddress, ErrorShowsTheText) {
  for (const char* text :
       {"", "127.0.0.1:3334/vpfs", "tcp://127.0.0.1:3334", "tcp://:1/x", "tcp://127.0.0.1/vpfs",
        "ib://127.0.0.1:1/x", "tcp://127.0.0.1:1/", "tcp://127.0.0.1:1/a/b"}) {
    const auto result = parse_mount_address(text);
    ASSERT_FALSE(result) << text;
    EXPECT_NE(result.error().message.find(text), std::string::npos);
  }
}

}  // namespace
}  // namespace vpfs::client
