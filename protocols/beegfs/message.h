#pragma once

#include <array>
#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocols/beegfs/bodies.h"
#include "protocols/beegfs/message_header.h"

namespace vpfs::beegfs {

// A whole message, owned. The proxy's data path needs only message_header.h and file_io.h.
struct Message {
  // Five bytes of unknown meaning behind the body of some messages of the mirroring.
  using MirrorTail = std::array<std::byte, 5>;

  MessageHeader header = {};
  Body body = {};
  std::optional<MirrorTail> mirror_tail = {};  // only where header.flags & kMirrorSecond

  bool operator==(const Message&) const = default;
};

[[nodiscard]] MessageType type_of(const Body& body);

enum class MessageError {
  truncated,       // a field reaches past the end
  trailing_bytes,  // the message is longer than its fields
  bad_text,        // a NUL inside a text, none at its end, or padding that is not zero
  bad_value,       // a negative count, a bool that is neither 0 nor 1
};
[[nodiscard]] const char* describe(MessageError error);

// `bytes` is one whole message, header included; `header` is its header. Allocates at most a small
// constant plus the texts; reads nothing past the end.
[[nodiscard]] std::expected<Message, MessageError> decode_message(const MessageHeader& header,
                                                                  std::span<const std::byte> bytes);

// The length, the type and the feature flags that say which fields are there follow from the body.
[[nodiscard]] std::vector<std::byte> encode_message(const Message& message);

}  // namespace vpfs::beegfs
