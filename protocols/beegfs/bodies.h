#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "protocols/beegfs/file_bodies.h"
#include "protocols/beegfs/types.h"

// The bodies of the messages that a storage server exchanges with clients and other servers, owned.
// Each struct says its type and names its fields once, in wire order (protocols/fields.h), for the
// archives of body_archive.h.
namespace vpfs::beegfs {

// A client or server introduces itself, once per connection; there is no answer.
struct AuthenticateChannel {
  static constexpr MessageType kType = MessageType::authenticate_channel;
  std::uint64_t hash = 0;

  bool operator==(const AuthenticateChannel&) const = default;
  static void fields(auto& archive, auto& x) { VPFS_FIELDS(archive, x.hash); }
};

struct SetChannelDirect {
  static constexpr MessageType kType = MessageType::set_channel_direct;
  std::int32_t direct = 0;

  bool operator==(const SetChannelDirect&) const = default;
  static void fields(auto& archive, auto& x) { VPFS_FIELDS(archive, x.direct); }
};

struct PeerInfo {
  static constexpr MessageType kType = MessageType::peer_info;
  NodeType node_type = NodeType::client;
  std::uint32_t node = 0;

  bool operator==(const PeerInfo&) const = default;
  static void fields(auto& archive, auto& x) { VPFS_FIELDS(archive, x.node_type, x.node); }
};

struct StatStoragePath {
  static constexpr MessageType kType = MessageType::stat_storage_path;
  std::uint16_t target = 0;

  bool operator==(const StatStoragePath&) const = default;
  static void fields(auto& archive, auto& x) { VPFS_FIELDS(archive, x.target); }
};

struct StatStoragePathResp {
  static constexpr MessageType kType = MessageType::stat_storage_path_resp;
  OpsError error = OpsError::success;
  std::int64_t total = 0;
  std::int64_t free = 0;
  std::int64_t inodes = 0;
  std::int64_t free_inodes = 0;

  bool operator==(const StatStoragePathResp&) const = default;
  static void fields(auto& archive, auto& x) {
    VPFS_FIELDS(archive, x.error, x.total, x.free, x.inodes, x.free_inodes);
  }
};

// Requests that only name a chunk file.
template <MessageType kMessageType>
struct ChunkRequest {
  static constexpr MessageType kType = kMessageType;
  std::string entry = {};
  ChunkPath path = {};
  std::uint16_t target = 0;

  bool operator==(const ChunkRequest&) const = default;
  static void fields(auto& archive, auto& x) {
    VPFS_FIELDS(archive, aligned(x.entry), x.path, x.target);
  }
};
using GetChunkFileAttribs = ChunkRequest<MessageType::get_chunk_file_attribs>;
using UnlinkLocalFile = ChunkRequest<MessageType::unlink_local_file>;

struct TruncLocalFile {
  static constexpr MessageType kType = MessageType::trunc_local_file;
  std::int64_t size = 0;
  std::optional<FileOwner> file_owner = {};
  std::string entry = {};
  ChunkPath path = {};
  std::uint16_t target = 0;

  bool operator==(const TruncLocalFile&) const = default;
  static void fields(auto& archive, auto& x) {
    VPFS_FIELDS(archive, x.size, flagged(kTruncHasOwner, x.file_owner), aligned(x.entry), x.path,
                x.target);
  }
};

struct SetLocalAttr {
  static constexpr MessageType kType = MessageType::set_local_attr;
  std::int64_t mtime = 0;
  std::int64_t atime = 0;
  std::int32_t valid = 0;
  std::int32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string entry = {};
  ChunkPath path = {};
  std::uint16_t target = 0;
  bool create = false;

  bool operator==(const SetLocalAttr&) const = default;
  static void fields(auto& archive, auto& x) {
    VPFS_FIELDS(archive, x.mtime, x.atime, x.valid, x.mode, x.uid, x.gid, aligned(x.entry), x.path,
                x.target, x.create);
  }
};

// Answers that tell a chunk file's attributes.
template <MessageType kMessageType>
struct ChunkAttributesAnswer {
  static constexpr MessageType kType = kMessageType;
  std::int64_t size = 0;
  std::int64_t blocks = 0;
  std::int64_t mtime = 0;
  std::int64_t atime = 0;
  std::uint64_t version = 0;
  OpsError error = OpsError::success;

  bool operator==(const ChunkAttributesAnswer&) const = default;
  static void fields(auto& archive, auto& x) {
    VPFS_FIELDS(archive, x.size, x.blocks, x.mtime, x.atime, x.version, x.error);
  }
};
using CloseChunkFileResp = ChunkAttributesAnswer<MessageType::close_chunk_file_resp>;
using GetChunkFileAttribsResp = ChunkAttributesAnswer<MessageType::get_chunk_file_attribs_resp>;
using TruncLocalFileResp = ChunkAttributesAnswer<MessageType::trunc_local_file_resp>;
using SetLocalAttrResp = ChunkAttributesAnswer<MessageType::set_local_attr_resp>;

struct UnlinkLocalFileResp {
  static constexpr MessageType kType = MessageType::unlink_local_file_resp;
  OpsError error = OpsError::success;

  bool operator==(const UnlinkLocalFileResp&) const = default;
  static void fields(auto& archive, auto& x) { VPFS_FIELDS(archive, x.error); }
};

// May replace the answer to any request except a read.
struct GenericResponse {
  static constexpr MessageType kType = MessageType::generic_response;
  static constexpr std::int32_t kTryAgain = 0;
  static constexpr std::int32_t kIndirectError = 1;
  std::int32_t code = kTryAgain;
  std::string text = {};

  bool operator==(const GenericResponse&) const = default;
  static void fields(auto& archive, auto& x) { VPFS_FIELDS(archive, x.code, x.text); }
};

// Answers a Notice whose id it repeats.
struct Ack {
  static constexpr MessageType kType = MessageType::ack;
  std::string ack_id = {};

  bool operator==(const Ack&) const = default;
  static void fields(auto& archive, auto& x) { VPFS_FIELDS(archive, x.ack_id); }
};

// "Look again at ..."; an Ack answers it unless ack_id is empty.
template <MessageType kMessageType>
struct Notice {
  static constexpr MessageType kType = kMessageType;
  std::string ack_id = {};

  bool operator==(const Notice&) const = default;
  static void fields(auto& archive, auto& x) { VPFS_FIELDS(archive, x.ack_id); }
};
using RefreshTargetStates = Notice<MessageType::refresh_target_states>;
using PublishCapacities = Notice<MessageType::publish_capacities>;
using RefreshStoragePools = Notice<MessageType::refresh_storage_pools>;

// The body of any other type.
struct Opaque {
  MessageType type = {};
  std::vector<std::byte> bytes = {};

  bool operator==(const Opaque&) const = default;
};

using Body = std::variant<AuthenticateChannel, SetChannelDirect, PeerInfo, WriteLocalFile,
                          WriteLocalFileResp, ReadLocalFile, FsyncLocalFile, FsyncLocalFileResp,
                          StatStoragePath, StatStoragePathResp, CloseChunkFile, CloseChunkFileResp,
                          GetChunkFileAttribs, GetChunkFileAttribsResp, TruncLocalFile,
                          TruncLocalFileResp, UnlinkLocalFile, UnlinkLocalFileResp, SetLocalAttr,
                          SetLocalAttrResp, GenericResponse, Ack, RefreshTargetStates,
                          PublishCapacities, RefreshStoragePools, Opaque>;

}  // namespace vpfs::beegfs
