#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "protocols/beegfs/types.h"

namespace vpfs::beegfs {

// The 40 bytes before every message. The data of a write and the answer of a read have no header.
struct MessageHeader {
  std::uint32_t length = 0;  // of header and body
  std::uint16_t feature_flags = 0;
  std::uint8_t compat_flags = 0;
  std::uint8_t flags = 0;
  MessageType type = {};
  std::uint16_t target = 0;  // never a mirror group; 0: does not apply
  std::uint32_t user = kNoUser;
  std::uint64_t sequence = 0;
  std::uint64_t sequence_done = 0;

  bool operator==(const MessageHeader&) const = default;
};

inline constexpr std::size_t kMessageHeaderSize = 40;
// Servers accept bodies of 4 MiB; anything longer than this is not a message.
inline constexpr std::uint32_t kMaxMessageSize = std::uint32_t{64} * 1024 * 1024;

enum class HeaderError { need_more, bad_prefix, bad_length };
[[nodiscard]] const char* describe(HeaderError error);

// Reads nothing past the header. `need_more` is not a fault: call again with more bytes. After any
// other error the stream has lost its framing; close the connection.
[[nodiscard]] std::expected<MessageHeader, HeaderError> decode_message_header(
    std::span<const std::byte> bytes);

// Appends the header; header.length stays as given.
void encode(const MessageHeader& header, std::vector<std::byte>& out);
// A whole message; header.length is computed.
[[nodiscard]] std::vector<std::byte> make_message(MessageHeader header,
                                                  std::span<const std::byte> body);

}  // namespace vpfs::beegfs
