#include "tools/load/block_pattern.h"

#include <vector>

#include <gtest/gtest.h>

namespace vpfs::load {
namespace {

constexpr BlockIdentity kIdentity{.file = 0xabc, .offset = 8192, .generation = 3};

std::vector<std::byte> block(std::size_t size, const BlockIdentity& identity = kIdentity) {
  std::vector<std::byte> bytes(size);
  fill_block(bytes, identity);
  return bytes;
}

TEST(BlockPattern, AnUntouchedBlockIsGood) {
  for (const std::size_t size : {64U, 1000U, 4093U, 4096U}) {
    EXPECT_EQ(find_damage(block(size), kIdentity), std::nullopt) << size;
  }
}

TEST(BlockPattern, EveryChangedByteIsFound) {
  std::vector<std::byte> bytes = block(1003);
  for (std::byte& each : bytes) {
    each ^= std::byte{0x10};
    EXPECT_NE(find_damage(bytes, kIdentity), std::nullopt);
    each ^= std::byte{0x10};
  }
}

TEST(BlockPattern, ABlockOfAnotherPlaceFileOrTimeIsNamed) {
  const auto complaint = [](const BlockIdentity& found) {
    return find_damage(block(4096, found), kIdentity).value_or("");
  };
  EXPECT_NE(complaint({.file = 0xabc, .offset = 4096, .generation = 3}).find("offset 4096"),
            std::string::npos);
  EXPECT_NE(complaint({.file = 0xdef, .offset = 8192, .generation = 3}).find("def"),
            std::string::npos);
  EXPECT_NE(complaint({.file = 0xabc, .offset = 8192, .generation = 2}).find("generation 2"),
            std::string::npos);
}

TEST(BlockPattern, ZerosAreNotABlock) {
  EXPECT_NE(find_damage(std::vector<std::byte>(4096), kIdentity)->find("no block"),
            std::string::npos);
}

}  // namespace
}  // namespace vpfs::load
