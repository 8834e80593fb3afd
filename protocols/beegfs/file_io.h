#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "protocols/beegfs/message_header.h"

namespace vpfs::beegfs {

// Where a chunk file belongs: the directory that its file was created in.
struct PathInfo {
  static constexpr std::uint32_t kHasOrigin = 1;

  std::uint32_t flags = 0;
  // Where flags & kHasOrigin.
  std::uint32_t owner = 0;          // uid of that directory at the time
  std::string_view directory = {};  // its entry id

  bool operator==(const PathInfo&) const = default;
};

struct FileOwner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

  bool operator==(const FileOwner&) const = default;
};

// The body of WriteLocalFile and ReadLocalFileV2, borrowed from the message. The data of a write
// follow the message without framing.
struct FileIo {
  std::int64_t offset = 0;  // in the chunk file
  std::int64_t count = 0;   // bytes; never negative
  std::uint32_t access_flags = 0;
  std::optional<FileOwner> owner = {};  // of the file; writes of clients with quota
  std::string_view file_handle = {};    // "<session>#<entry id>"
  std::uint32_t client = 0;             // the mount's number
  PathInfo path = {};
  std::uint16_t target = 0;  // or a mirror group

  bool operator==(const FileIo&) const = default;
};

enum class FileIoError { too_short, bad_text, negative_count };
[[nodiscard]] const char* describe(FileIoError error);

// `message` is whole, header included; `header` is its header. Bytes after the last field are
// ignored.
[[nodiscard]] std::expected<FileIo, FileIoError> decode_file_io(const MessageHeader& header,
                                                                std::span<const std::byte> message);
// A whole message. `header` gives the type, target and user; `io` decides its flag for the owner.
[[nodiscard]] std::vector<std::byte> encode_file_io(MessageHeader header, const FileIo& io);

// The answer of a write: bytes written, or a negated OpsError.
[[nodiscard]] std::vector<std::byte> write_answer(std::int64_t result);

}  // namespace vpfs::beegfs
