#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "protocols/orangefs/basic_types.h"
#include "protocols/orangefs/types.h"

// The bodies of all responses with status zero; other responses have no body.
namespace vpfs::orangefs {

struct CreateResponse {
  Handle metafile_handle = 0;
  std::uint32_t stuffed = 0;
  Attributes attributes;
  bool operator==(const CreateResponse&) const = default;
};

struct IoResponse {
  std::int64_t bstream_size = 0;  // of the datafile before the operation
  bool operator==(const IoResponse&) const = default;
};

// GETATTR and UNSTUFF.
struct AttributesResponse {
  Op op = Op::getattr;
  Attributes attributes;
  bool operator==(const AttributesResponse&) const = default;
};

struct LookupPathResponse {
  std::vector<Handle> handles;         // one per path segment that was resolved
  std::vector<Attributes> attributes;  // of the first of them, as many as were asked for
  bool operator==(const LookupPathResponse&) const = default;
};

// RMDIRENT (the removed entry's handle), CHDIRENT (the old handle), MGMT_GET_DIRDATA_HANDLE.
struct HandleResponse {
  Op op = Op::rmdirent;
  Handle handle = 0;
  bool operator==(const HandleResponse&) const = default;
};

struct MkdirResponse {
  Handle handle = 0;
  Capability capability;
  bool operator==(const MkdirResponse&) const = default;
};

struct ReaddirResponse {
  struct Entry {
    std::string name;
    Handle handle = 0;
    bool operator==(const Entry&) const = default;
  };
  std::uint64_t token = 0;
  std::uint64_t directory_version = 0;
  std::vector<Entry> entries;
  bool operator==(const ReaddirResponse&) const = default;
};

struct GetconfigResponse {
  std::uint32_t size = 0;  // length of the text + 1
  std::string config;
  bool operator==(const GetconfigResponse&) const = default;
};

struct WriteCompletionResponse {
  std::int64_t total_completed = 0;
  bool operator==(const WriteCompletionResponse&) const = default;
};

struct StatfsResponse {
  FsId fs_id = 0;
  std::uint64_t bytes_available = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t ram_total_bytes = 0;
  std::uint64_t ram_free_bytes = 0;
  std::uint64_t load_1 = 0;
  std::uint64_t load_5 = 0;
  std::uint64_t load_15 = 0;
  std::uint64_t uptime_seconds = 0;
  std::uint64_t handles_available = 0;
  std::uint64_t handles_total = 0;
  bool operator==(const StatfsResponse&) const = default;
};

struct MgmtPerfMonResponse {
  std::uint32_t key_count = 0;
  std::uint32_t next_id = 0;
  std::uint64_t end_time_ms = 0;
  std::uint64_t current_time_ms = 0;
  std::uint32_t sample_count = 0;
  std::vector<std::int64_t> samples;
  bool operator==(const MgmtPerfMonResponse&) const = default;
};

struct MgmtIterateHandlesResponse {
  std::uint64_t position = 0;
  std::vector<Handle> handles;
  bool operator==(const MgmtIterateHandlesResponse&) const = default;
};

struct MgmtDspaceInfoListResponse {
  struct Info {
    std::int32_t error = 0;
    Handle handle = 0;
    ObjectType type = ObjectType::none;
    std::int64_t b_size = 0;
    std::uint64_t k_size = 0;
    bool operator==(const Info&) const = default;
  };
  std::vector<Info> infos;
  bool operator==(const MgmtDspaceInfoListResponse&) const = default;
};

struct MgmtEventMonResponse {
  std::vector<std::byte> events;  // 40 bytes each, as they are
  bool operator==(const MgmtEventMonResponse&) const = default;
};

// GETEATTR and ATOMICEATTR.
struct EattrResponse {
  Op op = Op::geteattr;
  std::vector<std::string> values;
  std::vector<Status> errors;  // as many as values
  bool operator==(const EattrResponse&) const = default;
};

struct ListeattrResponse {
  std::uint64_t token = 0;
  std::vector<std::string> keys;
  bool operator==(const ListeattrResponse&) const = default;
};

struct SmallIoResponse {
  IoType io_type = IoType::read;
  std::int64_t bstream_size = 0;
  std::int64_t result_size = 0;
  std::vector<std::byte> data;  // of a read, result_size bytes
  bool operator==(const SmallIoResponse&) const = default;
};

struct ListattrResponse {
  std::vector<Status> errors;
  std::vector<Attributes> attributes;  // as many as errors
  bool operator==(const ListattrResponse&) const = default;
};

struct BatchCreateResponse {
  std::vector<Handle> handles;
  bool operator==(const BatchCreateResponse&) const = default;
};

struct MirrorResponse {
  struct Result {
    std::uint32_t bytes_written = 0;
    std::uint32_t status = 0;
    bool operator==(const Result&) const = default;
  };
  Handle source_handle = 0;
  std::uint32_t source_server_nr = 0;
  std::vector<Result> results;
  bool operator==(const MirrorResponse&) const = default;
};

// TREE_REMOVE and TREE_SETATTR.
struct TreeStatusResponse {
  Op op = Op::tree_remove;
  std::uint32_t caller_index = 0;
  std::vector<Status> statuses;
  bool operator==(const TreeStatusResponse&) const = default;
};

struct TreeGetFileSizeResponse {
  std::uint32_t caller_index = 0;
  std::vector<std::int64_t> sizes;
  std::vector<Status> errors;  // as many as sizes
  bool operator==(const TreeGetFileSizeResponse&) const = default;
};

struct TreeGetattrResponse {
  std::uint32_t caller_index = 0;
  std::vector<Attributes> attributes;
  std::vector<Status> errors;  // as many as attributes
  bool operator==(const TreeGetattrResponse&) const = default;
};

struct MgmtGetUidResponse {
  struct Use {
    std::uint32_t uid = 0;
    std::uint64_t count = 0;
    std::uint64_t first_seconds = 0;
    std::uint32_t first_microseconds = 0;
    std::uint64_t last_seconds = 0;
    std::uint32_t last_microseconds = 0;
    bool operator==(const Use&) const = default;
  };
  std::vector<Use> uses;
  bool operator==(const MgmtGetUidResponse&) const = default;
};

struct MgmtGetDirentResponse {
  Handle handle = 0;
  Status error = 0;
  bool operator==(const MgmtGetDirentResponse&) const = default;
};

// MGMT_GET_USER_CERT and MGMT_GET_USER_CERT_KEYREQ.
struct UserCertResponse {
  Op op = Op::mgmt_get_user_cert;
  std::vector<std::byte> bytes;
  bool operator==(const UserCertResponse&) const = default;
};

// Responses that carry only a status, whatever their operation, and all with a non-zero status.
struct EmptyResponse {
  Op op = Op::invalid;
  bool operator==(const EmptyResponse&) const = default;
};

using ResponseBody =
    std::variant<EmptyResponse, CreateResponse, IoResponse, AttributesResponse, LookupPathResponse,
                 HandleResponse, MkdirResponse, ReaddirResponse, GetconfigResponse,
                 WriteCompletionResponse, StatfsResponse, MgmtPerfMonResponse,
                 MgmtIterateHandlesResponse, MgmtDspaceInfoListResponse, MgmtEventMonResponse,
                 EattrResponse, ListeattrResponse, SmallIoResponse, ListattrResponse,
                 BatchCreateResponse, MirrorResponse, TreeStatusResponse, TreeGetFileSizeResponse,
                 TreeGetattrResponse, MgmtGetUidResponse, MgmtGetDirentResponse, UserCertResponse>;

}  // namespace vpfs::orangefs
