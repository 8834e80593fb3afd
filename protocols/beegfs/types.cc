#include "protocols/beegfs/types.h"

#include <algorithm>
#include <array>
#include <utility>

namespace vpfs::beegfs {
namespace {

using Name = std::pair<MessageType, std::string_view>;

// In the order of their numbers.
constexpr std::array kNames = {
    Name{MessageType::remove_node, "RemoveNode"},
    Name{MessageType::remove_node_resp, "RemoveNodeResp"},
    Name{MessageType::heartbeat_request, "HeartbeatRequest"},
    Name{MessageType::heartbeat, "Heartbeat"},
    Name{MessageType::map_targets, "MapTargets"},
    Name{MessageType::map_targets_resp, "MapTargetsResp"},
    Name{MessageType::generic_debug, "GenericDebug"},
    Name{MessageType::generic_debug_resp, "GenericDebugResp"},
    Name{MessageType::get_client_stats, "GetClientStatsV2"},
    Name{MessageType::get_client_stats_resp, "GetClientStatsV2Resp"},
    Name{MessageType::storage_bench_control, "StorageBenchControl"},
    Name{MessageType::storage_bench_control_resp, "StorageBenchControlResp"},
    Name{MessageType::set_mirror_buddy_group, "SetMirrorBuddyGroup"},
    Name{MessageType::set_mirror_buddy_group_resp, "SetMirrorBuddyGroupResp"},
    Name{MessageType::refresh_target_states, "RefreshTargetStates"},
    Name{MessageType::set_target_consistency_states, "SetTargetConsistencyStates"},
    Name{MessageType::set_target_consistency_states_resp, "SetTargetConsistencyStatesResp"},
    Name{MessageType::publish_capacities, "PublishCapacities"},
    Name{MessageType::remove_buddy_group, "RemoveBuddyGroup"},
    Name{MessageType::remove_buddy_group_resp, "RemoveBuddyGroupResp"},
    Name{MessageType::get_target_consistency_states, "GetTargetConsistencyStates"},
    Name{MessageType::get_target_consistency_states_resp, "GetTargetConsistencyStatesResp"},
    Name{MessageType::refresh_storage_pools, "RefreshStoragePools"},
    Name{MessageType::unlink_local_file, "UnlinkLocalFile"},
    Name{MessageType::unlink_local_file_resp, "UnlinkLocalFileResp"},
    Name{MessageType::get_chunk_file_attribs, "GetChunkFileAttribs"},
    Name{MessageType::get_chunk_file_attribs_resp, "GetChunkFileAttribsResp"},
    Name{MessageType::trunc_local_file, "TruncLocalFile"},
    Name{MessageType::trunc_local_file_resp, "TruncLocalFileResp"},
    Name{MessageType::stat_storage_path, "StatStoragePath"},
    Name{MessageType::stat_storage_path_resp, "StatStoragePathResp"},
    Name{MessageType::set_local_attr, "SetLocalAttr"},
    Name{MessageType::set_local_attr_resp, "SetLocalAttrResp"},
    Name{MessageType::get_high_res_stats, "GetHighResStats"},
    Name{MessageType::get_high_res_stats_resp, "GetHighResStatsResp"},
    Name{MessageType::set_exceeded_quota, "SetExceededQuota"},
    Name{MessageType::set_exceeded_quota_resp, "SetExceededQuotaResp"},
    Name{MessageType::resync_local_file, "ResyncLocalFile"},
    Name{MessageType::resync_local_file_resp, "ResyncLocalFileResp"},
    Name{MessageType::storage_resync_started, "StorageResyncStarted"},
    Name{MessageType::storage_resync_started_resp, "StorageResyncStartedResp"},
    Name{MessageType::list_chunk_dir_incremental, "ListChunkDirIncremental"},
    Name{MessageType::list_chunk_dir_incremental_resp, "ListChunkDirIncrementalResp"},
    Name{MessageType::rm_chunk_paths, "RmChunkPaths"},
    Name{MessageType::rm_chunk_paths_resp, "RmChunkPathsResp"},
    Name{MessageType::get_storage_resync_stats, "GetStorageResyncStats"},
    Name{MessageType::get_storage_resync_stats_resp, "GetStorageResyncStatsResp"},
    Name{MessageType::set_last_buddy_comm_override, "SetLastBuddyCommOverride"},
    Name{MessageType::set_last_buddy_comm_override_resp, "SetLastBuddyCommOverrideResp"},
    Name{MessageType::get_quota_info, "GetQuotaInfo"},
    Name{MessageType::get_quota_info_resp, "GetQuotaInfoResp"},
    Name{MessageType::cp_chunk_paths, "CpChunkPaths"},
    Name{MessageType::cp_chunk_paths_resp, "CpChunkPathsResp"},
    Name{MessageType::get_chunk_balance_job_stats, "GetChunkBalanceJobStats"},
    Name{MessageType::get_chunk_balance_job_stats_resp, "GetChunkBalanceJobStatsResp"},
    Name{MessageType::close_chunk_file, "CloseChunkFile"},
    Name{MessageType::close_chunk_file_resp, "CloseChunkFileResp"},
    Name{MessageType::write_local_file, "WriteLocalFile"},
    Name{MessageType::write_local_file_resp, "WriteLocalFileResp"},
    Name{MessageType::fsync_local_file, "FSyncLocalFile"},
    Name{MessageType::fsync_local_file_resp, "FSyncLocalFileResp"},
    Name{MessageType::read_local_file, "ReadLocalFileV2"},
    Name{MessageType::set_channel_direct, "SetChannelDirect"},
    Name{MessageType::ack, "Ack"},
    Name{MessageType::dummy, "Dummy"},
    Name{MessageType::authenticate_channel, "AuthenticateChannel"},
    Name{MessageType::generic_response, "GenericResponse"},
    Name{MessageType::peer_info, "PeerInfo"},
    Name{MessageType::request_storage_data, "RequestStorageData"},
    Name{MessageType::request_storage_data_resp, "RequestStorageDataResp"},
    Name{MessageType::delete_chunks, "DeleteChunks"},
    Name{MessageType::delete_chunks_resp, "DeleteChunksResp"},
    Name{MessageType::fetch_fsck_chunk_list, "FetchFsckChunkList"},
    Name{MessageType::fetch_fsck_chunk_list_resp, "FetchFsckChunkListResp"},
    Name{MessageType::move_chunk_file, "MoveChunkFile"},
    Name{MessageType::move_chunk_file_resp, "MoveChunkFileResp"},
};

}  // namespace

std::string_view name(MessageType type) {
  const auto found = std::ranges::lower_bound(kNames, type, {}, &Name::first);
  return found != kNames.end() && found->first == type ? found->second : "";
}

bool has_answer(MessageType type) {
  switch (type) {
    case MessageType::set_channel_direct:
    case MessageType::ack:
    case MessageType::dummy:
    case MessageType::authenticate_channel:
    case MessageType::peer_info:
      return false;
    default:
      return !asks_for_ack(type);
  }
}

bool asks_for_ack(MessageType type) {
  return type == MessageType::refresh_target_states || type == MessageType::publish_capacities ||
         type == MessageType::refresh_storage_pools;
}

bool is_answer(MessageType type) {
  return type == MessageType::generic_response || name(type).ends_with("Resp");
}

// An answer's number follows its request's, with one exception.
std::optional<MessageType> answer_of(MessageType request) {
  if (asks_for_ack(request)) return MessageType::ack;
  if (request == MessageType::request_storage_data) return MessageType::request_storage_data_resp;
  const MessageType next{static_cast<std::uint16_t>(static_cast<std::uint16_t>(request) + 1)};
  if (name(request).empty() || is_answer(request) || !is_answer(next)) return std::nullopt;
  return next;
}

std::string_view describe(OpsError error) {
  switch (error) {
    case OpsError::success:
      return "success";
    case OpsError::internal:
      return "internal error";
    case OpsError::interrupted:
      return "interrupted";
    case OpsError::communication:
      return "communication error";
    case OpsError::timed_out:
      return "timed out";
    case OpsError::unknown_node:
      return "unknown node";
    case OpsError::in_use:
      return "in use";
    case OpsError::no_space:
      return "no space";
    case OpsError::unknown_target:
      return "unknown target";
    case OpsError::invalid:
      return "invalid argument";
    case OpsError::again:
      return "try again";
    case OpsError::storage_server_crashed:
      return "storage server crashed";
    case OpsError::permission:
      return "not permitted";
    case OpsError::quota:
      return "over quota";
    case OpsError::range:
      return "out of range";
  }
  return "";
}

}  // namespace vpfs::beegfs
