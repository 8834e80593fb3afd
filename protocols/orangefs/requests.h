#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "protocols/orangefs/basic_types.h"
#include "protocols/orangefs/types.h"

// The bodies of all requests, in the order of their operation numbers. A request on the wire is a
// generic header, op, capability, hints and one of these (message.h). Fields are in wire order.
namespace vpfs::orangefs {

struct CreateRequest {
  FsId fs_id = 0;
  Credential credential;
  Attributes attributes;
  std::int32_t num_datafiles = 0;
  Layout layout;
  bool operator==(const CreateRequest&) const = default;
};

struct RemoveRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  Credential credential;
  bool operator==(const RemoveRequest&) const = default;
};

struct IoRequestBody {
  Handle handle = 0;  // of the datafile
  FsId fs_id = 0;
  IoType io_type = IoType::read;
  FlowType flow_type = FlowType::default_flow;
  std::uint32_t server_nr = 0;  // this datafile's index among the file's datafiles
  std::uint32_t server_ct = 1;
  Distribution distribution;
  FileRequest file_request;
  std::int64_t file_request_offset = 0;
  std::int64_t aggregate_size = 0;
  bool operator==(const IoRequestBody&) const = default;
};

// SMALL_IO has no flow_type on the wire. `data` is the payload of a write (total_bytes of it).
struct SmallIoRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  IoType io_type = IoType::read;
  std::uint32_t server_nr = 0;
  std::uint32_t server_ct = 1;
  Distribution distribution;
  FileRequest file_request;
  std::int64_t file_request_offset = 0;
  std::int64_t aggregate_size = 0;
  std::int64_t total_bytes = 0;
  std::vector<std::byte> data;
  bool operator==(const SmallIoRequest&) const = default;
};

struct GetattrRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  std::uint32_t attribute_mask = 0;
  Credential credential;
  bool operator==(const GetattrRequest&) const = default;
};

struct SetattrRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  Attributes attributes;
  Credential credential;
  bool operator==(const SetattrRequest&) const = default;
};

struct LookupPathRequest {
  std::string path;
  FsId fs_id = 0;
  Handle starting_handle = 0;
  std::uint32_t attribute_mask = 0;
  Credential credential;
  bool operator==(const LookupPathRequest&) const = default;
};

struct CrdirentRequest {
  Credential credential;
  std::string name;
  Handle new_handle = 0;
  Handle parent_handle = 0;
  Handle dirdata_handle = 0;
  FsId fs_id = 0;
  bool operator==(const CrdirentRequest&) const = default;
};

struct RmdirentRequest {
  std::string name;
  Handle dirdata_handle = 0;
  FsId fs_id = 0;
  bool operator==(const RmdirentRequest&) const = default;
};

struct ChdirentRequest {
  std::string name;
  Handle new_handle = 0;
  Handle dirdata_handle = 0;
  FsId fs_id = 0;
  bool operator==(const ChdirentRequest&) const = default;
};

struct TruncateRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  std::int64_t size = 0;
  std::int32_t flags = 0;
  bool operator==(const TruncateRequest&) const = default;
};

struct MkdirRequest {
  FsId fs_id = 0;
  Credential credential;
  Attributes attributes;
  std::vector<HandleExtent> handle_extents;
  std::int32_t servers_min = 0;  // of the distributed directory
  std::int32_t servers_max = 0;
  std::int32_t split_size = 0;
  Layout layout;
  bool operator==(const MkdirRequest&) const = default;
};

struct ReaddirRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  std::uint32_t dirent_limit = 0;
  std::uint64_t token = 0;
  bool operator==(const ReaddirRequest&) const = default;
};

// Requests without a body; `Op` tells which (GETCONFIG, MGMT_NOOP, PROTO_ERROR, IMM_COPIES).
struct EmptyRequest {
  Op op = Op::getconfig;
  bool operator==(const EmptyRequest&) const = default;
};

struct FlushRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  std::int32_t flags = 0;
  bool operator==(const FlushRequest&) const = default;
};

struct MgmtSetparamRequest {
  FsId fs_id = 0;
  std::int32_t parameter = 0;
  std::int32_t value_type = 0;  // 0: number, else text
  std::uint64_t number = 0;
  std::string text;
  bool operator==(const MgmtSetparamRequest&) const = default;
};

struct StatfsRequest {
  FsId fs_id = 0;
  bool operator==(const StatfsRequest&) const = default;
};

struct MgmtPerfMonRequest {
  std::uint32_t counter_type = 0;
  std::uint32_t next_id = 0;
  std::uint32_t key_count = 0;
  std::uint32_t count = 0;
  bool operator==(const MgmtPerfMonRequest&) const = default;
};

struct MgmtIterateHandlesRequest {
  FsId fs_id = 0;
  std::int32_t handle_count = 0;
  std::int32_t flags = 0;
  std::uint64_t position = 0;
  bool operator==(const MgmtIterateHandlesRequest&) const = default;
};

struct MgmtDspaceInfoListRequest {
  FsId fs_id = 0;
  std::vector<Handle> handles;
  bool operator==(const MgmtDspaceInfoListRequest&) const = default;
};

struct MgmtEventMonRequest {
  std::uint32_t event_count = 0;
  bool operator==(const MgmtEventMonRequest&) const = default;
};

// A handle and a file system: MGMT_REMOVE_OBJECT, MGMT_GET_DIRDATA_HANDLE, MGMT_CREATE_ROOT_DIR.
struct ObjectRequest {
  Op op = Op::mgmt_remove_object;
  Handle handle = 0;
  FsId fs_id = 0;
  bool operator==(const ObjectRequest&) const = default;
};

struct MgmtRemoveDirentRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  std::string name;
  bool operator==(const MgmtRemoveDirentRequest&) const = default;
};

// Extended attribute keys and values are byte runs; OrangeFS's own end with a NUL.
struct GeteattrRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  std::vector<std::string> keys;
  std::vector<std::int64_t> value_sizes;  // room for each value; as many as keys
  bool operator==(const GeteattrRequest&) const = default;
};

struct SeteattrRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  std::int32_t flags = 0;
  std::vector<std::string> keys;
  std::vector<std::string> values;  // as many as keys
  bool operator==(const SeteattrRequest&) const = default;
};

struct DeleattrRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  std::string key;
  bool operator==(const DeleattrRequest&) const = default;
};

struct ListeattrRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  std::uint64_t token = 0;
  std::vector<std::int64_t> key_sizes;
  bool operator==(const ListeattrRequest&) const = default;
};

struct ListattrRequest {
  FsId fs_id = 0;
  std::uint32_t attribute_mask = 0;
  std::vector<Handle> handles;
  bool operator==(const ListattrRequest&) const = default;
};

struct BatchCreateRequest {
  FsId fs_id = 0;
  ObjectType object_type = ObjectType::none;
  std::uint32_t count = 0;
  std::vector<HandleExtent> handle_extents;
  bool operator==(const BatchCreateRequest&) const = default;
};

struct BatchRemoveRequest {
  FsId fs_id = 0;
  std::vector<Handle> handles;
  bool operator==(const BatchRemoveRequest&) const = default;
};

struct UnstuffRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  std::uint32_t attribute_mask = 0;
  Credential credential;
  bool operator==(const UnstuffRequest&) const = default;
};

struct MirrorRequest {
  struct Destination {
    Handle handle = 0;
    std::uint32_t server_nr = 0;
    bool operator==(const Destination&) const = default;
  };
  Handle source_handle = 0;
  FsId fs_id = 0;
  Distribution distribution;
  std::uint32_t byte_count = 0;
  std::uint32_t source_server_nr = 0;
  std::int32_t flow_type = 0;
  std::int32_t encoding = 0;
  std::vector<Destination> destinations;
  bool operator==(const MirrorRequest&) const = default;
};

struct TreeRemoveRequest {
  FsId fs_id = 0;
  Credential credential;
  std::uint32_t caller_index = 0;
  std::vector<Handle> handles;
  bool operator==(const TreeRemoveRequest&) const = default;
};

struct TreeGetFileSizeRequest {
  FsId fs_id = 0;
  std::uint32_t caller_index = 0;
  std::uint32_t retry_msgpair = 0;
  Credential credential;
  std::vector<Handle> handles;
  bool operator==(const TreeGetFileSizeRequest&) const = default;
};

struct TreeGetattrRequest {
  FsId fs_id = 0;
  std::uint32_t caller_index = 0;
  std::uint32_t retry_msgpair = 0;
  Credential credential;
  std::uint32_t attribute_mask = 0;
  std::vector<Handle> handles;
  bool operator==(const TreeGetattrRequest&) const = default;
};

struct TreeSetattrRequest {
  FsId fs_id = 0;
  Credential credential;
  ObjectType object_type = ObjectType::none;
  Attributes attributes;
  std::uint32_t caller_index = 0;
  std::vector<Handle> handles;
  bool operator==(const TreeSetattrRequest&) const = default;
};

struct MgmtGetUidRequest {
  std::uint32_t history = 0;
  bool operator==(const MgmtGetUidRequest&) const = default;
};

struct MgmtGetDirentRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  std::string name;
  bool operator==(const MgmtGetDirentRequest&) const = default;
};

struct MgmtSplitDirentRequest {
  FsId fs_id = 0;
  Handle destination = 0;
  Distribution distribution;
  std::int32_t undo = 0;
  std::vector<Handle> handles;
  std::vector<std::string> names;  // as many as handles
  bool operator==(const MgmtSplitDirentRequest&) const = default;
};

struct AtomiceattrRequest {
  Handle handle = 0;
  FsId fs_id = 0;
  std::int32_t flags = 0;
  std::int32_t opcode = 0;
  std::vector<std::string> keys;
  std::vector<std::string> values;
  std::vector<std::int64_t> value_sizes;
  bool operator==(const AtomiceattrRequest&) const = default;
};

struct MgmtGetUserCertRequest {
  FsId fs_id = 0;
  std::string user;
  std::vector<std::byte> password;
  std::vector<std::byte> key;
  std::uint32_t expiration = 0;
  bool operator==(const MgmtGetUserCertRequest&) const = default;
};

struct MgmtGetUserCertKeyreqRequest {
  FsId fs_id = 0;
  bool operator==(const MgmtGetUserCertKeyreqRequest&) const = default;
};

// op_of() in message.h tells the Op of a body.
using RequestBody = std::variant<
    CreateRequest, RemoveRequest, IoRequestBody, GetattrRequest, SetattrRequest, LookupPathRequest,
    CrdirentRequest, RmdirentRequest, ChdirentRequest, TruncateRequest, MkdirRequest,
    ReaddirRequest, EmptyRequest, FlushRequest, MgmtSetparamRequest, StatfsRequest,
    MgmtPerfMonRequest, MgmtIterateHandlesRequest, MgmtDspaceInfoListRequest, MgmtEventMonRequest,
    ObjectRequest, MgmtRemoveDirentRequest, GeteattrRequest, SeteattrRequest, DeleattrRequest,
    ListeattrRequest, SmallIoRequest, ListattrRequest, BatchCreateRequest, BatchRemoveRequest,
    UnstuffRequest, MirrorRequest, TreeRemoveRequest, TreeGetFileSizeRequest, MgmtGetUidRequest,
    TreeSetattrRequest, MgmtGetDirentRequest, MgmtSplitDirentRequest, AtomiceattrRequest,
    TreeGetattrRequest, MgmtGetUserCertRequest, MgmtGetUserCertKeyreqRequest>;

}  // namespace vpfs::orangefs
