#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// The vocabulary of BeeMsg, the protocol of BeeGFS (docs/wire-beegfs.md).
namespace vpfs::beegfs {

// The types that a storage server may see. Others exist and pass as unknown.
enum class MessageType : std::uint16_t {
  remove_node = 1013,
  remove_node_resp = 1014,
  heartbeat_request = 1019,
  heartbeat = 1020,
  map_targets = 1023,
  map_targets_resp = 1024,
  generic_debug = 1029,
  generic_debug_resp = 1030,
  get_client_stats = 1033,
  get_client_stats_resp = 1034,
  storage_bench_control = 1037,
  storage_bench_control_resp = 1038,
  set_mirror_buddy_group = 1045,
  set_mirror_buddy_group_resp = 1046,
  refresh_target_states = 1051,
  set_target_consistency_states = 1055,
  set_target_consistency_states_resp = 1056,
  publish_capacities = 1059,
  remove_buddy_group = 1060,
  remove_buddy_group_resp = 1061,
  get_target_consistency_states = 1062,
  get_target_consistency_states_resp = 1063,
  refresh_storage_pools = 1070,
  unlink_local_file = 2011,
  unlink_local_file_resp = 2012,
  get_chunk_file_attribs = 2017,
  get_chunk_file_attribs_resp = 2018,
  trunc_local_file = 2021,
  trunc_local_file_resp = 2022,
  stat_storage_path = 2031,
  stat_storage_path_resp = 2032,
  set_local_attr = 2033,
  set_local_attr_resp = 2034,
  get_high_res_stats = 2051,
  get_high_res_stats_resp = 2052,
  set_exceeded_quota = 2077,
  set_exceeded_quota_resp = 2078,
  resync_local_file = 2083,
  resync_local_file_resp = 2084,
  storage_resync_started = 2087,
  storage_resync_started_resp = 2088,
  list_chunk_dir_incremental = 2089,
  list_chunk_dir_incremental_resp = 2090,
  rm_chunk_paths = 2091,
  rm_chunk_paths_resp = 2092,
  get_storage_resync_stats = 2093,
  get_storage_resync_stats_resp = 2094,
  set_last_buddy_comm_override = 2095,
  set_last_buddy_comm_override_resp = 2096,
  get_quota_info = 2097,
  get_quota_info_resp = 2098,
  cp_chunk_paths = 2125,
  cp_chunk_paths_resp = 2126,
  get_chunk_balance_job_stats = 2133,
  get_chunk_balance_job_stats_resp = 2134,
  close_chunk_file = 3007,
  close_chunk_file_resp = 3008,
  write_local_file = 3009,
  write_local_file_resp = 3010,
  fsync_local_file = 3013,
  fsync_local_file_resp = 3014,
  read_local_file = 3019,  // "V2"; has no answer message
  set_channel_direct = 4001,
  ack = 4003,
  dummy = 4005,
  authenticate_channel = 4007,
  generic_response = 4009,
  peer_info = 4011,
  request_storage_data = 6004,
  request_storage_data_resp = 6006,
  delete_chunks = 7019,
  delete_chunks_resp = 7020,
  fetch_fsck_chunk_list = 7038,
  fetch_fsck_chunk_list_resp = 7039,
  move_chunk_file = 7042,
  move_chunk_file_resp = 7043,
};

// "WriteLocalFile"; "" for a type that is not listed.
[[nodiscard]] std::string_view name(MessageType type);
// Whether servers answer a request of that type on TCP. Types of datagrams (refresh_target_states,
// ...) are answered only on request: see asks_for_ack().
[[nodiscard]] bool has_answer(MessageType type);
// Types that are answered by an Ack if, and only if, their text `ackID` is not empty.
[[nodiscard]] bool asks_for_ack(MessageType type);
// Whether the type is an answer; no client begins with one.
[[nodiscard]] bool is_answer(MessageType type);
// Reads or writes of a file's data.
[[nodiscard]] constexpr bool is_file_io(MessageType type) {
  return type == MessageType::read_local_file || type == MessageType::write_local_file;
}
// Requests of servers and administrators that have a server move file data by itself: from one to
// another, within one, or as a benchmark of its disks.
[[nodiscard]] constexpr bool moves_chunks(MessageType type) {
  return type == MessageType::resync_local_file || type == MessageType::cp_chunk_paths ||
         type == MessageType::storage_bench_control;
}
// The type that answers a listed request, besides generic_response. Nothing for requests without an
// answer message and for types that are not listed.
[[nodiscard]] std::optional<MessageType> answer_of(MessageType request);

enum class NodeType : std::uint32_t { meta = 1, storage = 2, client = 3, management = 4 };

// FhgfsOpsErr: positive in most answers, negated where a byte count is expected otherwise.
enum class OpsError : std::int32_t {
  success = 0,
  internal = 1,
  interrupted = 2,
  communication = 3,
  timed_out = 4,
  unknown_node = 5,
  in_use = 9,
  no_space = 14,
  unknown_target = 15,
  invalid = 20,
  again = 22,
  storage_server_crashed = 23,
  permission = 24,
  quota = 25,
  range = 27,
};
// "no space"; "" for a number that is not listed.
[[nodiscard]] std::string_view describe(OpsError error);

// Bits of msgFeatureFlags, whose meaning depends on the message type.
inline constexpr std::uint16_t kWriteHasOwner = 2;
// The file is on a mirror group; its number replaces that of the target.
inline constexpr std::uint16_t kWriteMirrored = 8;
inline constexpr std::uint16_t kReadMirrored = 4;
inline constexpr std::uint16_t kWriteToMirror = 16;  // a primary forwards it to its secondary
inline constexpr std::uint16_t kReadFromMirror = 8;
inline constexpr std::uint16_t kTruncHasOwner = 2;

// Bit of msgFlags.
inline constexpr std::uint8_t kMirrorSecond = 1;

// The msgUserID of messages without a user.
inline constexpr std::uint32_t kNoUser = 0xffffffff;

}  // namespace vpfs::beegfs
