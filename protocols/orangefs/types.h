#pragma once

#include <cstdint>
#include <string_view>

// The constants of the OrangeFS/PVFS2 protocol 7.0; docs/wire-orangefs.md describes them.
namespace vpfs::orangefs {

using Handle = std::uint64_t;
using FsId = std::int32_t;
using Tag = std::uint64_t;
// Zero, or a negative PVFS error code (errors.h).
using Status = std::int32_t;

inline constexpr std::uint32_t kProtocolVersion = 7000;
inline constexpr std::uint32_t kEncodingLittleEndian = 2;
// The largest UNEXPECTED or EAGER payload.
inline constexpr std::uint64_t kMaxEagerSize = 16384;
inline constexpr std::uint64_t kMaxMessageSize = 16U << 20;
inline constexpr std::uint64_t kDefaultFlowBufferSize = 262144;

enum class Op : std::int32_t {
  invalid = 0,
  create = 1,
  remove = 2,
  io = 3,
  getattr = 4,
  setattr = 5,
  lookup_path = 6,
  crdirent = 7,
  rmdirent = 8,
  chdirent = 9,
  truncate = 10,
  mkdir = 11,
  readdir = 12,
  getconfig = 13,
  write_completion = 14,
  flush = 15,
  mgmt_setparam = 16,
  mgmt_noop = 17,
  statfs = 18,
  perf_update = 19,
  mgmt_perf_mon = 20,
  mgmt_iterate_handles = 21,
  mgmt_dspace_info_list = 22,
  mgmt_event_mon = 23,
  mgmt_remove_object = 24,
  mgmt_remove_dirent = 25,
  mgmt_get_dirdata_handle = 26,
  job_timer = 27,
  proto_error = 28,
  geteattr = 29,
  seteattr = 30,
  deleattr = 31,
  listeattr = 32,
  small_io = 33,
  listattr = 34,
  batch_create = 35,
  batch_remove = 36,
  precreate_pool_refiller = 37,
  unstuff = 38,
  mirror = 39,
  imm_copies = 40,
  tree_remove = 41,
  tree_get_file_size = 42,
  mgmt_get_uid = 43,
  tree_setattr = 44,
  mgmt_get_dirent = 45,
  mgmt_create_root_dir = 46,
  mgmt_split_dirent = 47,
  atomiceattr = 48,
  tree_getattr = 49,
  mgmt_get_user_cert = 50,
  mgmt_get_user_cert_keyreq = 51,
};
// "SMALL_IO" and so on; "OP<n>" is never returned: unknown numbers give "UNKNOWN".
[[nodiscard]] std::string_view name(Op op);

enum class IoType : std::int32_t { read = 1, write = 2 };
enum class FlowType : std::int32_t { default_flow = 3 };

// Object types are bits, as PVFS_ds_type has them.
enum class ObjectType : std::int32_t {
  none = 0,
  metafile = 1,
  datafile = 2,
  directory = 4,
  symlink = 8,
  dirdata = 16,
  internal = 32,
};

// Which attributes a GETATTR asks for and an Attributes carries.
inline constexpr std::uint32_t kAttrUid = 1U << 0;
inline constexpr std::uint32_t kAttrGid = 1U << 1;
inline constexpr std::uint32_t kAttrPermissions = 1U << 2;
inline constexpr std::uint32_t kAttrAtime = 1U << 3;
inline constexpr std::uint32_t kAttrCtime = 1U << 4;
inline constexpr std::uint32_t kAttrMtime = 1U << 5;
inline constexpr std::uint32_t kAttrType = 1U << 6;
inline constexpr std::uint32_t kAttrAtimeSet = 1U << 7;
inline constexpr std::uint32_t kAttrMtimeSet = 1U << 8;
inline constexpr std::uint32_t kAttrCommonAll = 0x7fU;
inline constexpr std::uint32_t kAttrMetaDistribution = 1U << 10;
inline constexpr std::uint32_t kAttrMetaDatafiles = 1U << 11;
inline constexpr std::uint32_t kAttrMetaUnstuffed = 1U << 12;
inline constexpr std::uint32_t kAttrMetaMirrorDatafiles = 1U << 13;
inline constexpr std::uint32_t kAttrDataSize = 1U << 15;
inline constexpr std::uint32_t kAttrSymlinkTarget = 1U << 18;
inline constexpr std::uint32_t kAttrDirentCount = 1U << 19;
inline constexpr std::uint32_t kAttrDirHint = 1U << 20;
inline constexpr std::uint32_t kAttrDistDir = 1U << 21;
inline constexpr std::uint32_t kAttrCapability = 1U << 22;

// What a capability permits.
inline constexpr std::uint32_t kCapExecute = 1;
inline constexpr std::uint32_t kCapWrite = 2;
inline constexpr std::uint32_t kCapRead = 4;
inline constexpr std::uint32_t kCapSetattr = 8;
inline constexpr std::uint32_t kCapCreate = 16;
inline constexpr std::uint32_t kCapAdmin = 32;
inline constexpr std::uint32_t kCapRemove = 64;
inline constexpr std::uint32_t kCapBatchCreate = 128;
inline constexpr std::uint32_t kCapBatchRemove = 256;

}  // namespace vpfs::orangefs
