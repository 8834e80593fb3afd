#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "protocols/beegfs/body_wrappers.h"
#include "protocols/beegfs/file_io.h"
#include "protocols/beegfs/types.h"

// The bodies of the requests on open files, and of their answers; see bodies.h.
namespace vpfs::beegfs {

// PathInfo that owns its text.
struct ChunkPath {
  std::uint32_t flags = 0;
  // Where flags & PathInfo::kHasOrigin.
  std::uint32_t owner = 0;
  std::string directory = {};

  bool operator==(const ChunkPath&) const = default;
  static void fields(auto& archive, auto& x) {
    archive.named("path_flags", x.flags);
    if ((x.flags & PathInfo::kHasOrigin) == 0) return;
    VPFS_FIELDS(archive, x.owner, aligned(x.directory));
  }
};

struct WriteLocalFile {
  static constexpr MessageType kType = MessageType::write_local_file;
  std::int64_t offset = 0;  // in the chunk file
  std::int64_t count = 0;   // of the bytes that follow the message; never negative
  std::uint32_t access_flags = 0;
  std::optional<FileOwner> file_owner = {};
  std::string file_handle = {};
  std::uint32_t client = 0;
  ChunkPath path = {};
  std::uint16_t target = 0;

  bool operator==(const WriteLocalFile&) const = default;
  static void fields(auto& archive, auto& x) {
    VPFS_FIELDS(archive, x.offset, not_negative(x.count), x.access_flags,
                flagged(kWriteHasOwner, x.file_owner), aligned(x.file_handle), x.client, x.path,
                x.target);
  }
};

struct WriteLocalFileResp {
  static constexpr MessageType kType = MessageType::write_local_file_resp;
  std::int64_t result = 0;  // bytes written, or a negated OpsError

  bool operator==(const WriteLocalFileResp&) const = default;
  static void fields(auto& archive, auto& x) { VPFS_FIELDS(archive, x.result); }
};

// Is answered by length words and data, not by a message.
struct ReadLocalFile {
  static constexpr MessageType kType = MessageType::read_local_file;
  std::int64_t offset = 0;
  std::int64_t count = 0;
  std::uint32_t access_flags = 0;
  std::string file_handle = {};
  std::uint32_t client = 0;
  ChunkPath path = {};
  std::uint16_t target = 0;

  bool operator==(const ReadLocalFile&) const = default;
  static void fields(auto& archive, auto& x) {
    VPFS_FIELDS(archive, x.offset, not_negative(x.count), x.access_flags, aligned(x.file_handle),
                x.client, x.path, x.target);
  }
};

struct FsyncLocalFile {
  static constexpr MessageType kType = MessageType::fsync_local_file;
  std::uint32_t client = 0;
  std::string file_handle = {};
  std::uint16_t target = 0;

  bool operator==(const FsyncLocalFile&) const = default;
  static void fields(auto& archive, auto& x) {
    VPFS_FIELDS(archive, x.client, aligned(x.file_handle), x.target);
  }
};

struct FsyncLocalFileResp {
  static constexpr MessageType kType = MessageType::fsync_local_file_resp;
  std::int64_t error = 0;

  bool operator==(const FsyncLocalFileResp&) const = default;
  static void fields(auto& archive, auto& x) { VPFS_FIELDS(archive, x.error); }
};

struct CloseChunkFile {
  static constexpr MessageType kType = MessageType::close_chunk_file;
  std::uint32_t client = 0;
  std::string file_handle = {};
  ChunkPath path = {};
  std::uint16_t target = 0;

  bool operator==(const CloseChunkFile&) const = default;
  static void fields(auto& archive, auto& x) {
    VPFS_FIELDS(archive, x.client, aligned(x.file_handle), x.path, x.target);
  }
};

}  // namespace vpfs::beegfs
