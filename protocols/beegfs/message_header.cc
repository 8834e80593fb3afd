#include "protocols/beegfs/message_header.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "base/byte_writer.h"

namespace vpfs::beegfs {
namespace {
// "BGFS" over a data version of 0.
constexpr std::uint64_t kPrefix = std::uint64_t{0x42474653} << 32;
constexpr std::size_t kPrefixOffset = 8;

// Whether the part of the prefix that has arrived is already wrong.
bool has_wrong_prefix(std::span<const std::byte> bytes) {
  const std::size_t end = std::min(bytes.size(), kPrefixOffset + sizeof(kPrefix));
  for (std::size_t i = kPrefixOffset; i < end; ++i) {
    const std::uint64_t expected = kPrefix >> 8 * (i - kPrefixOffset) & 0xff;
    if (std::to_integer<std::uint64_t>(bytes[i]) != expected) return true;
  }
  return false;
}

}  // namespace

const char* describe(HeaderError error) {
  switch (error) {
    case HeaderError::need_more:
      return "the message is not complete";
    case HeaderError::bad_prefix:
      return "bad prefix in the message header";
    case HeaderError::bad_length:
      return "the length in the message header is not possible";
  }
  return "unknown header error";
}

std::expected<MessageHeader, HeaderError> decode_message_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kMessageHeaderSize) {
    const bool wrong = has_wrong_prefix(bytes);
    return std::unexpected(wrong ? HeaderError::bad_prefix : HeaderError::need_more);
  }
  ByteReader in(bytes.first(kMessageHeaderSize));
  MessageHeader header;
  header.length = in.u32();
  header.feature_flags = in.u16();
  header.compat_flags = in.u8();
  header.flags = in.u8();
  const std::uint64_t prefix = in.u64();
  header.type = MessageType{in.u16()};
  header.target = in.u16();
  header.user = in.u32();
  header.sequence = in.u64();
  header.sequence_done = in.u64();
  if (prefix != kPrefix) return std::unexpected(HeaderError::bad_prefix);
  if (header.length < kMessageHeaderSize || header.length > kMaxMessageSize) {
    return std::unexpected(HeaderError::bad_length);
  }
  return header;
}

void encode(const MessageHeader& header, std::vector<std::byte>& out) {
  ByteWriter writer(out);
  writer.u32(header.length);
  writer.u16(header.feature_flags);
  writer.u8(header.compat_flags);
  writer.u8(header.flags);
  writer.u64(kPrefix);
  writer.u16(static_cast<std::uint16_t>(header.type));
  writer.u16(header.target);
  writer.u32(header.user);
  writer.u64(header.sequence);
  writer.u64(header.sequence_done);
}

std::vector<std::byte> make_message(MessageHeader header, std::span<const std::byte> body) {
  header.length = static_cast<std::uint32_t>(kMessageHeaderSize + body.size());
  std::vector<std::byte> message;
  message.reserve(header.length);
  encode(header, message);
  message.insert(message.end(), body.begin(), body.end());
  return message;
}

}  // namespace vpfs::beegfs
