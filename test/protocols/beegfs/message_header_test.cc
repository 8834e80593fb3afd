#include "protocols/beegfs/message_header.h"

#include <array>

#include <gtest/gtest.h>

namespace vpfs::beegfs {
namespace {

const MessageHeader kHeader{.length = 0x0304,
                            .feature_flags = 0x1122,
                            .compat_flags = 0x33,
                            .flags = 0x44,
                            .type = MessageType::write_local_file,
                            .target = 101,
                            .user = 1001,
                            .sequence = 0x0102030405060708,
                            .sequence_done = 0x1112131415161718};

std::vector<std::byte> encoded(const MessageHeader& header) {
  std::vector<std::byte> bytes;
  encode(header, bytes);
  return bytes;
}

TEST(MessageHeader, EncodesToTheDocumentedBytes) {
  const auto bytes = encoded(kHeader);
  ASSERT_EQ(bytes.size(), kMessageHeaderSize);
  const std::array<int, 40> expected = {
      0x04, 0x03, 0,    0,    0x22, 0x11, 0x33, 0x44,   // length, flags
      0,    0,    0,    0,    0x53, 0x46, 0x47, 0x42,   // prefix
      0xc1, 0x0b, 101,  0,    0xe9, 0x03, 0,    0,      // type, target, user
      0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,   // sequence
      0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11};  // sequence done
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(std::to_integer<int>(bytes[i]), expected[i]) << "at " << i;
  }
}

TEST(MessageHeader, SurvivesTheWire) {
  EXPECT_EQ(decode_message_header(encoded(kHeader)), kHeader);
}

TEST(MessageHeader, ShorterThanAHeaderNeedsMore) {
  const auto bytes = encoded(kHeader);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_EQ(decode_message_header(std::span(bytes).first(size)).error(), HeaderError::need_more);
  }
}

TEST(MessageHeader, WrongPrefixIsReportedFromTheFirstWrongByte) {
  for (std::size_t wrong = 8; wrong < 16; ++wrong) {
    auto bytes = encoded(kHeader);
    bytes[wrong] ^= std::byte{1};
    const std::span<const std::byte> all(bytes);
    EXPECT_EQ(decode_message_header(all.first(wrong)).error(), HeaderError::need_more);
    for (std::size_t size = wrong + 1; size <= all.size(); ++size) {
      ASSERT_EQ(decode_message_header(all.first(size)).error(), HeaderError::bad_prefix) << size;
    }
  }
}

TEST(MessageHeader, LengthIsCheckedAgainstBothBounds) {
  MessageHeader header = kHeader;
  for (const std::uint32_t length : {0U, 39U, kMaxMessageSize + 1, 0xffffffffU}) {
    header.length = length;
    EXPECT_EQ(decode_message_header(encoded(header)).error(), HeaderError::bad_length) << length;
  }
  for (const std::uint32_t length : {40U, kMaxMessageSize}) {
    header.length = length;
    EXPECT_EQ(decode_message_header(encoded(header)), header);
  }
}

TEST(MessageHeader, MakeMessageCountsHeaderAndBody) {
  const std::vector<std::byte> body(7, std::byte{9});
  const auto message = make_message(kHeader, body);
  ASSERT_EQ(message.size(), kMessageHeaderSize + 7);
  EXPECT_EQ(decode_message_header(message)->length, message.size());
  EXPECT_EQ(message.back(), std::byte{9});
}

}  // namespace
}  // namespace vpfs::beegfs
