#pragma once

#include "protocols/orangefs/attribute_fields.h"

// The wire order of the operations for administration and between servers.
namespace vpfs::orangefs {

template <typename A>
void fields(A&, StructOf<A, EmptyRequest>&) {}
template <typename A>
void fields(A& archive, StructOf<A, MgmtSetparamRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, x.parameter, x.value_type);
  if (x.value_type == 0) {
    VPFS_FIELDS(archive, x.number);
  } else {
    VPFS_FIELDS(archive, x.text);
  }
}
template <typename A>
void fields(A& archive, StructOf<A, StatfsRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id);
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtPerfMonRequest>& x) {
  VPFS_FIELDS(archive, x.counter_type, x.next_id, x.key_count, x.count);
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtIterateHandlesRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, x.handle_count, x.flags, x.position);
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtDspaceInfoListRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, list(x.handles));
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtEventMonRequest>& x) {
  VPFS_FIELDS(archive, x.event_count);
}
template <typename A>
void fields(A& archive, StructOf<A, ObjectRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id);
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtRemoveDirentRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, kPad4, x.name);
}
template <typename A>
void fields(A& archive, StructOf<A, TreeRemoveRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, x.credential, x.caller_index, list(x.handles));
}
template <typename A>
void fields(A& archive, StructOf<A, TreeGetFileSizeRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, x.caller_index, x.retry_msgpair, x.credential, list(x.handles));
}
template <typename A>
void fields(A& archive, StructOf<A, TreeGetattrRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, x.caller_index, x.retry_msgpair, x.credential, x.attribute_mask,
              list(x.handles));
}
template <typename A>
void fields(A& archive, StructOf<A, TreeSetattrRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, x.credential, x.object_type, x.attributes, x.caller_index,
              list(x.handles));
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtGetUidRequest>& x) {
  VPFS_FIELDS(archive, x.history);
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtGetDirentRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, x.name);
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtSplitDirentRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, x.destination, x.distribution, kPad4, x.undo,
              list(x.handles, x.names));
}

// The sizes of password and key have 64 bits and come before the bytes.
template <typename A>
void fields(A& archive, StructOf<A, MgmtGetUserCertRequest>& x) {
  std::uint64_t password_size = x.password.size();
  std::uint64_t key_size = x.key.size();
  VPFS_FIELDS(archive, x.fs_id, x.user, password_size);
  VPFS_FIELDS(archive, array(x.password, password_size), key_size);
  VPFS_FIELDS(archive, array(x.key, key_size), x.expiration);
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtGetUserCertKeyreqRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id);
}

template <typename A>
void fields(A&, StructOf<A, EmptyResponse>&) {}
template <typename A>
void fields(A& archive, StructOf<A, GetconfigResponse>& x) {
  VPFS_FIELDS(archive, x.size, kPad4, x.config);
}
template <typename A>
void fields(A& archive, StructOf<A, StatfsResponse>& x) {
  VPFS_FIELDS(archive, kPad4, x.fs_id, x.bytes_available, x.bytes_total, x.ram_total_bytes,
              x.ram_free_bytes, x.load_1, x.load_5, x.load_15, x.uptime_seconds,
              x.handles_available, x.handles_total);
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtPerfMonResponse>& x) {
  VPFS_FIELDS(archive, x.key_count, x.next_id, x.end_time_ms, x.current_time_ms, x.sample_count,
              list(x.samples));
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtIterateHandlesResponse>& x) {
  VPFS_FIELDS(archive, x.position, kPad4, list(x.handles));
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtDspaceInfoListResponse::Info>& x) {
  VPFS_FIELDS(archive, x.error, kPad4, x.handle, x.type, kPad4, x.b_size, x.k_size);
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtDspaceInfoListResponse>& x) {
  VPFS_FIELDS(archive, kPad4, list(x.infos));
}

inline constexpr std::size_t kEventSize = 40;
template <typename A>
void fields(A& archive, StructOf<A, MgmtEventMonResponse>& x) {
  VPFS_FIELDS(archive, kPad4);
  if constexpr (A::kDecodes) {
    VPFS_FIELDS(archive, array(x.events, std::uint64_t{archive.count(kEventSize)} * kEventSize));
  } else {
    VPFS_ASSERT(x.events.size() % kEventSize == 0);
    const auto event_count = static_cast<std::uint32_t>(x.events.size() / kEventSize);
    VPFS_FIELDS(archive, event_count, array(x.events, x.events.size()));
  }
}

template <typename A>
void fields(A& archive, StructOf<A, TreeStatusResponse>& x) {
  VPFS_FIELDS(archive, kPad4, x.caller_index, list(x.statuses));
}
template <typename A>
void fields(A& archive, StructOf<A, TreeGetFileSizeResponse>& x) {
  VPFS_FIELDS(archive, x.caller_index, list(x.sizes, x.errors));
}
template <typename A>
void fields(A& archive, StructOf<A, TreeGetattrResponse>& x) {
  VPFS_FIELDS(archive, x.caller_index, list(x.attributes, x.errors));
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtGetUidResponse::Use>& x) {
  VPFS_FIELDS(archive, x.uid, x.count, x.first_seconds, x.first_microseconds, x.last_seconds,
              x.last_microseconds);
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtGetUidResponse>& x) {
  VPFS_FIELDS(archive, kPad4, list(x.uses));
}
template <typename A>
void fields(A& archive, StructOf<A, MgmtGetDirentResponse>& x) {
  VPFS_FIELDS(archive, x.handle, x.error);
}
template <typename A>
void fields(A& archive, StructOf<A, UserCertResponse>& x) {
  VPFS_FIELDS(archive, kPad4, list(x.bytes));
}

}  // namespace vpfs::orangefs
