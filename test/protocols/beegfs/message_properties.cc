#include "test/protocols/beegfs/message_properties.h"

#include <algorithm>
#include <vector>

#include "protocols/beegfs/message.h"

namespace vpfs::beegfs::test {
namespace {

using Problem = std::optional<std::string>;

bool same_path(const PathInfo& borrowed, const ChunkPath& owned) {
  return borrowed.flags == owned.flags && borrowed.owner == owned.owner &&
         borrowed.directory == owned.directory;
}

template <typename Io>
Problem compare(const FileIo& found, const Io& io) {
  if (found.offset != io.offset || found.count != io.count) return "range";
  if (found.access_flags != io.access_flags) return "access flags";
  if (found.file_handle != io.file_handle) return "file handle";
  if (found.client != io.client || found.target != io.target) return "client or target";
  if (!same_path(found.path, io.path)) return "path";
  if constexpr (requires { io.file_owner; }) {
    if (found.owner != io.file_owner) return "owner of the file";
  } else {
    if (found.owner) return "owner of the file in a read";
  }
  return std::nullopt;
}

template <typename Io>
Problem file_io_disagrees(const Message& message, std::span<const std::byte> bytes) {
  const auto* io = std::get_if<Io>(&message.body);
  if (io == nullptr) return std::nullopt;
  const auto found = decode_file_io(message.header, bytes);
  if (!found) return std::string("decode_file_io refuses it: ") + describe(found.error());
  if (Problem problem = compare(*found, *io)) return "decode_file_io differs: " + *problem;
  const auto encoded = encode_file_io(message.header, *found);
  const std::size_t tail = message.mirror_tail ? message.mirror_tail->size() : 0;
  // The header's length counts the tail, which encode_file_io() leaves out.
  if (encoded.size() + tail != bytes.size() ||
      !std::ranges::equal(std::span(encoded).subspan(kMessageHeaderSize),
                          bytes.first(encoded.size()).subspan(kMessageHeaderSize))) {
    return "encode_file_io differs";
  }
  return std::nullopt;
}

}  // namespace

Problem broken_property(std::span<const std::byte> bytes) {
  const auto header = decode_message_header(bytes);
  if (!header) {
    const bool may_need_more = bytes.size() < kMessageHeaderSize;
    if (header.error() == HeaderError::need_more && !may_need_more) return "a header needs more";
    return std::nullopt;
  }
  const auto message = decode_message(*header, bytes);
  if (!message) return std::nullopt;
  const std::vector<std::byte> encoded = encode_message(*message);
  if (!std::ranges::equal(encoded, bytes)) return "the encoded bytes differ";
  const auto again = decode_message(*header, encoded);
  if (!again || !(*again == *message)) return "decoding what was encoded gives something else";
  if (Problem problem = file_io_disagrees<WriteLocalFile>(*message, bytes)) return problem;
  return file_io_disagrees<ReadLocalFile>(*message, bytes);
}

}  // namespace vpfs::beegfs::test
