#include "client/beegfs/storage_address.h"

#include <gtest/gtest.h>

namespace vpfs::client {
namespace {

TEST(StorageAddress, NamesAServerAndItsTargets) {
  const auto address = parse_storage_address("beegfs://storage1:8003/101");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host_port, "storage1:8003");
  EXPECT_EQ(address->targets, std::vector<std::uint16_t>{101});
  const auto several = parse_storage_address("beegfs://storage1:8003/101,65535,7");
  ASSERT_TRUE(several);
  EXPECT_EQ(several->targets, (std::vector<std::uint16_t>{101, 65535, 7}));
}

TEST(StorageAddress, RefusesAnythingElseByItsText) {
  for (const char* text :
       {"", "beegfs://", "tcp://h:1/2", "beegfs://h:1", "beegfs://h/1", "beegfs://h:1/",
        "beegfs://h:1/0", "beegfs://h:1/65536", "beegfs://h:1/x", "beegfs://h:1/1/2",
        "beegfs://h:1/-1", "beegfs://h:1/1,", "beegfs://h:1/,1", "beegfs://h:1/1,,2",
        "beegfs://h:1/1,0", "beegfs://h:1/2,1,2", "beegfs://h:1/1;2", "beegfs://:1/1",
        "beegfs://h:/1"}) {
    const auto address = parse_storage_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_TRUE(address.error().message.starts_with(
        "'" + std::string(text) + "' is not a mount address: expected beegfs://"));
  }
}

}  // namespace
}  // namespace vpfs::client
