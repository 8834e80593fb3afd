#include "protocols/beegfs/message.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "protocols/beegfs/body_archive.h"

namespace vpfs::beegfs {
namespace {

// Types below this one never have a mirror tail.
constexpr MessageType kFirstWithMirrorTail{3000};

bool may_have_mirror_tail(const MessageHeader& header) {
  return (header.flags & kMirrorSecond) != 0 && header.type >= kFirstWithMirrorTail;
}

// Decodes the alternative of Body with this type; the last one takes all other types.
template <std::size_t kIndex = 0>
void decode_body(BodyDecoder& in, MessageType type, Body& body) {
  using Alternative = std::variant_alternative_t<kIndex, Body>;
  if constexpr (std::is_same_v<Alternative, Opaque>) {
    const std::span<const std::byte> bytes = in.rest();
    body = Opaque{.type = type, .bytes = {bytes.begin(), bytes.end()}};
  } else if (type == Alternative::kType) {
    Alternative::fields(in, body.emplace<Alternative>());
  } else {
    decode_body<kIndex + 1>(in, type, body);
  }
}

}  // namespace

const char* describe(MessageError error) {
  switch (error) {
    case MessageError::truncated:
      return "the message is shorter than its fields";
    case MessageError::trailing_bytes:
      return "bytes behind the last field";
    case MessageError::bad_text:
      return "a text with a NUL inside it, none at its end, or padding that is not zero";
    case MessageError::bad_value:
      return "a value that cannot be";
  }
  return "unknown error";
}

MessageType type_of(const Body& body) {
  return std::visit(
      []<typename Alternative>(const Alternative& found) {
        if constexpr (std::is_same_v<Alternative, Opaque>) {
          return found.type;
        } else {
          return Alternative::kType;
        }
      },
      body);
}

std::expected<Message, MessageError> decode_message(const MessageHeader& header,
                                                    std::span<const std::byte> bytes) {
  if (bytes.size() < kMessageHeaderSize || bytes.size() < header.length) {
    return std::unexpected(MessageError::truncated);
  }
  if (bytes.size() > header.length) return std::unexpected(MessageError::trailing_bytes);
  BodyDecoder in(bytes.subspan(kMessageHeaderSize), header.feature_flags);
  Message message{.header = header};
  decode_body(in, header.type, message.body);
  if (const auto error = in.error()) return std::unexpected(*error);
  const std::span<const std::byte> rest = in.rest();
  if (rest.empty()) return message;
  if (!may_have_mirror_tail(header) || rest.size() != Message::MirrorTail().size()) {
    return std::unexpected(MessageError::trailing_bytes);
  }
  std::ranges::copy(rest, message.mirror_tail.emplace().begin());
  return message;
}

std::vector<std::byte> encode_message(const Message& message) {
  MessageHeader header = message.header;
  header.type = type_of(message.body);
  std::vector<std::byte> body;
  if (const auto* opaque = std::get_if<Opaque>(&message.body)) {
    body = opaque->bytes;
  } else {
    BodyEncoder out(body, header.feature_flags);
    std::visit(
        [&out]<typename Alternative>(const Alternative& found) {
          if constexpr (!std::is_same_v<Alternative, Opaque>) Alternative::fields(out, found);
        },
        message.body);
    header.feature_flags = out.feature_flags();
  }
  if (message.mirror_tail) {
    body.insert(body.end(), message.mirror_tail->begin(), message.mirror_tail->end());
  }
  return make_message(header, body);
}

}  // namespace vpfs::beegfs
