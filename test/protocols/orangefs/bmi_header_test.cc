#include "protocols/orangefs/bmi_header.h"

#include <limits>

#include <gtest/gtest.h>

namespace vpfs::orangefs {
namespace {

TEST(BmiHeader, EncodesToTheDocumentedBytes) {
  const auto bytes = encode(BmiHeader{.mode = BmiMode::eager, .tag = 0x0102, .payload_size = 16});
  EXPECT_EQ(bytes[0], std::byte{0xbf});
  EXPECT_EQ(bytes[1], std::byte{0xca});
  EXPECT_EQ(bytes[4], std::byte{4});
  EXPECT_EQ(bytes[8], std::byte{2});
  EXPECT_EQ(bytes[9], std::byte{1});
  EXPECT_EQ(bytes[16], std::byte{16});
}

TEST(BmiHeader, SurvivesTheWire) {
  for (const BmiMode mode :
       {BmiMode::immediate, BmiMode::unexpected, BmiMode::eager, BmiMode::rendezvous}) {
    const BmiHeader header{.mode = mode, .tag = 0xfedcba9876543210, .payload_size = 12345};
    EXPECT_EQ(decode_bmi_header(encode(header)), header);
  }
}

TEST(BmiHeader, ShorterThanAHeaderNeedsMore) {
  const auto bytes = encode(BmiHeader{.tag = 1, .payload_size = 2});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_EQ(decode_bmi_header(std::span(bytes).first(size)).error(), BmiError::need_more);
  }
}

TEST(BmiHeader, WrongMagicIsReportedFromTheFirstWrongByte) {
  const auto good = encode(BmiHeader{});
  for (std::size_t wrong = 0; wrong < 4; ++wrong) {
    auto bytes = good;
    bytes[wrong] ^= std::byte{1};
    EXPECT_EQ(decode_bmi_header(std::span(bytes).first(wrong)).error(), BmiError::need_more);
    EXPECT_EQ(decode_bmi_header(std::span(bytes).first(wrong + 1)).error(), BmiError::bad_magic);
    EXPECT_EQ(decode_bmi_header(bytes).error(), BmiError::bad_magic);
  }
}

TEST(BmiHeader, ModesOutsideTheProtocolAreRefused) {
  for (const std::uint32_t mode : {0U, 3U, 5U, 16U, 0xffffffffU}) {
    EXPECT_EQ(decode_bmi_header(encode(BmiHeader{.mode = static_cast<BmiMode>(mode)})).error(),
              BmiError::bad_mode);
  }
}

TEST(BmiHeader, PayloadOverTheLimitIsRefused) {
  const auto at_limit = encode(BmiHeader{.payload_size = 100});
  EXPECT_TRUE(decode_bmi_header(at_limit, 100));
  EXPECT_EQ(decode_bmi_header(at_limit, 99).error(), BmiError::payload_too_large);
  const auto huge = encode(BmiHeader{.payload_size = std::numeric_limits<std::uint64_t>::max()});
  EXPECT_EQ(decode_bmi_header(huge).error(), BmiError::payload_too_large);
}

}  // namespace
}  // namespace vpfs::orangefs
