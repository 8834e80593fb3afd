#include "protocols/beegfs/message.h"

#include <cstdint>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "protocols/beegfs/describe.h"
#include "test/protocols/beegfs/captured.h"
#include "test/protocols/beegfs/message_properties.h"
#include "test/protocols/beegfs/text_lengths.h"

namespace vpfs::beegfs {
namespace {

using test::broken_property;
using test::captured_messages;
using test::CapturedMessage;

using Bytes = std::vector<std::byte>;

std::expected<Message, MessageError> message_of(std::span<const std::byte> bytes) {
  const auto header = decode_message_header(bytes);
  if (!header) return std::unexpected(MessageError::bad_value);
  return decode_message(*header, bytes);
}

std::uint32_t load32(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i > 0; --i) {
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i - 1]);
  }
  return value;
}
void store32(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> 8 * i);
}

// With a length in the header that fits: only the body is damaged.
Bytes with_size(const Bytes& message, std::size_t size) {
  Bytes changed = message;
  changed.resize(size);
  store32(changed, 0, static_cast<std::uint32_t>(size));
  return changed;
}

TEST(Message, EveryCapturedMessageDecodesAndEncodesToTheSameBytes) {
  std::set<MessageType> types;
  for (const CapturedMessage& captured : captured_messages()) {
    const auto message = message_of(captured.bytes);
    ASSERT_TRUE(message) << captured.name << ": " << describe(message.error());
    EXPECT_FALSE(std::holds_alternative<Opaque>(message->body)) << captured.name;
    EXPECT_EQ(encode_message(*message), captured.bytes) << captured.name;
    EXPECT_EQ(broken_property(captured.bytes), std::nullopt) << captured.name;
    types.insert(message->header.type);
  }
  EXPECT_EQ(types.size(), 19U);
}

TEST(Message, CutAtAnyByteIsTruncated) {
  for (const CapturedMessage& captured : captured_messages()) {
    const std::span<const std::byte> bytes = captured.bytes;
    const auto header = decode_message_header(bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      ASSERT_EQ(decode_message(*header, bytes.first(size)).error(), MessageError::truncated);
      if (size < kMessageHeaderSize) continue;
      ASSERT_EQ(message_of(with_size(captured.bytes, size)).error(), MessageError::truncated)
          << captured.name << " cut at " << size;
    }
  }
}

TEST(Message, BytesBehindTheLastFieldAreTrailing) {
  for (const CapturedMessage& captured : captured_messages()) {
    Bytes longer = captured.bytes;
    longer.push_back(std::byte{0});
    ASSERT_EQ(message_of(longer).error(), MessageError::trailing_bytes) << captured.name;
    for (const std::size_t more : {1U, 4U, 5U, 8U}) {
      ASSERT_EQ(message_of(with_size(captured.bytes, captured.bytes.size() + more)).error(),
                MessageError::trailing_bytes)
          << captured.name << " and " << more;
    }
  }
}

TEST(Message, FiveBytesMoreAreTheTailOfAMirroredMessage) {
  Message message{.header = {.flags = kMirrorSecond}, .body = WriteLocalFile{}};
  message.mirror_tail = Message::MirrorTail{std::byte{1}, std::byte{2}};
  const Bytes bytes = encode_message(message);
  ASSERT_TRUE(message_of(bytes));
  EXPECT_EQ(message_of(bytes)->mirror_tail, message.mirror_tail);
  EXPECT_EQ(broken_property(bytes), std::nullopt);
  EXPECT_EQ(message_of(with_size(bytes, bytes.size() - 1)).error(), MessageError::trailing_bytes);
  message.body = UnlinkLocalFile{};
  EXPECT_EQ(message_of(encode_message(message)).error(), MessageError::trailing_bytes);
}

TEST(Message, TextThatIsTooLongForTheMessageIsTruncated) {
  for (const CapturedMessage& captured : captured_messages()) {
    for (const std::size_t offset : test::TextLengths::of(*message_of(captured.bytes))) {
      Bytes damaged = captured.bytes;
      const auto rest = static_cast<std::uint32_t>(damaged.size() - offset - 4);
      for (const std::uint32_t wrong : {rest, rest + 1, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
        store32(damaged, offset, wrong);
        ASSERT_EQ(message_of(damaged).error(), MessageError::truncated)
            << captured.name << " length at " << offset << " is " << wrong;
      }
    }
  }
}

// A slightly wrong length may still give a message; the properties then hold for it.
TEST(Message, AnyWrongLengthKeepsTheProperties) {
  for (const CapturedMessage& captured : captured_messages()) {
    std::vector<std::size_t> lengths = test::TextLengths::of(*message_of(captured.bytes));
    lengths.push_back(0);
    for (const std::size_t offset : lengths) {
      Bytes damaged = captured.bytes;
      const std::uint32_t right = load32(damaged, offset);
      for (const std::uint32_t wrong :
           {0U, 1U, right - 1, right + 1, right + 4, right + 8, right * 2, right / 2}) {
        store32(damaged, offset, wrong);
        ASSERT_EQ(broken_property(damaged), std::nullopt)
            << captured.name << " length at " << offset << " is " << wrong;
      }
    }
  }
}

TEST(Message, AnyDamagedBitKeepsTheProperties) {
  for (const CapturedMessage& captured : captured_messages()) {
    Bytes damaged = captured.bytes;
    for (std::size_t bit = 0; bit < 8 * damaged.size(); ++bit) {
      const auto mask = static_cast<std::byte>(1U << bit % 8);
      damaged[bit / 8] ^= mask;
      ASSERT_EQ(broken_property(damaged), std::nullopt) << captured.name << " bit " << bit;
      damaged[bit / 8] ^= mask;
    }
  }
}

TEST(Message, ValuesThatCannotBeAreRefused) {
  EXPECT_EQ(message_of(encode_message({.body = WriteLocalFile{.count = -1}})).error(),
            MessageError::bad_value);
  EXPECT_EQ(message_of(encode_message({.body = ReadLocalFile{.count = -1}})).error(),
            MessageError::bad_value);
  Bytes attributes = encode_message({.body = SetLocalAttr{.create = true}});
  ASSERT_TRUE(message_of(attributes));
  attributes.back() = std::byte{2};
  EXPECT_EQ(message_of(attributes).error(), MessageError::bad_value);
}

TEST(Message, TextsNeedTheirNulAndZerosAsPadding) {
  const Bytes good = encode_message({.body = Ack{.ack_id = "ab"}});
  ASSERT_TRUE(message_of(good));
  Bytes damaged = good;
  damaged.back() = std::byte{1};
  EXPECT_EQ(message_of(damaged).error(), MessageError::bad_text);
  EXPECT_EQ(message_of(encode_message({.body = Ack{.ack_id = std::string("a\0b", 3)}})).error(),
            MessageError::bad_text);
  Bytes padded = encode_message({.body = UnlinkLocalFile{.entry = "ab"}});
  ASSERT_TRUE(message_of(padded));
  padded[kMessageHeaderSize + 4 + 2 + 1] = std::byte{1};
  EXPECT_EQ(message_of(padded).error(), MessageError::bad_text);
}

TEST(Message, TypesThatAreNotKnownAreOpaque) {
  const Bytes body(9, std::byte{7});
  const auto message = message_of(make_message({.type = MessageType{4711}}, body));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->body, Body(Opaque{.type = MessageType{4711}, .bytes = body}));
  EXPECT_EQ(type_of(message->body), MessageType{4711});
}

TEST(Message, FeatureFlagsFollowFromTheBody) {
  const Bytes with = encode_message(
      {.header = {.feature_flags = 1}, .body = TruncLocalFile{.file_owner = FileOwner{}}});
  EXPECT_EQ(decode_message_header(with)->feature_flags, 1 | kTruncHasOwner);
  const Bytes without =
      encode_message({.header = {.feature_flags = 1 | kWriteHasOwner}, .body = WriteLocalFile{}});
  EXPECT_EQ(decode_message_header(without)->feature_flags, 1);
}

TEST(Message, SummaryTellsWhatMatters) {
  const Message write{
      .header = {.target = 101, .user = 1001},
      .body = WriteLocalFile{.offset = 4096,
                             .count = 100,
                             .file_owner = FileOwner{.uid = 1005, .gid = 1006},
                             .file_handle = "1A\x1b#0-1-1",
                             .client = 2,
                             .path = {.flags = 1, .owner = 1003, .directory = "2-1-1"}}};
  EXPECT_EQ(summary(write),
            "target=101 uid=1001 offset=4096 count=100 handle=1A?#0-1-1 node=2 owner=1003 "
            "dir=2-1-1 file_uid=1005");
  EXPECT_EQ(summary({.body = PeerInfo{.node_type = NodeType::client, .node = 7}}),
            "role=client node=7");
  EXPECT_EQ(summary({.body = WriteLocalFileResp{.result = -15}}), "result=-15 (unknown target)");
  EXPECT_EQ(summary({.body = WriteLocalFileResp{.result = 15}}), "result=15");
  EXPECT_EQ(summary({.body = UnlinkLocalFileResp{.error = OpsError::in_use}}), "error=9 (in use)");
  EXPECT_EQ(summary({.body = Opaque{.bytes = Bytes(3)}}), "body=3 bytes");
}

TEST(Message, DetailsTellEveryField) {
  const Message trunc{.header = {.feature_flags = 2, .user = 1001},
                      .body = TruncLocalFile{.size = 5,
                                             .file_owner = FileOwner{.uid = 1, .gid = 2},
                                             .entry = "a\"\x01",
                                             .path = {.flags = 1, .owner = 3, .directory = "d"},
                                             .target = 4}};
  EXPECT_EQ(details(trunc),
            "feature_flags=2 compat_flags=0 flags=0 header_target=0 user=1001 sequence=0 "
            "sequence_done=0 size=5 file_uid=1 file_gid=2 entry=\"a\\\"\\x01\" path_flags=1 "
            "owner=3 directory=\"d\" target=4");
}

TEST(Message, ResultsOfAnySizeHaveAText) {
  EXPECT_EQ(describe_result(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(describe_result(-22), "-22 (try again)");
  EXPECT_EQ(describe_result(-77), "-77");
  EXPECT_EQ(describe_result(22), "22");
}

}  // namespace
}  // namespace vpfs::beegfs
