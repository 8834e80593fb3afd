#pragma once

#include "protocols/orangefs/basic_fields.h"

// The wire order of the operations that move file data.
namespace vpfs::orangefs {

[[nodiscard]] constexpr bool is_known(IoType type) {
  return type == IoType::read || type == IoType::write;
}

template <typename A>
void fields(A& archive, StructOf<A, IoRequestBody>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, kPad4, x.io_type, x.flow_type, x.server_nr, x.server_ct,
              x.distribution, x.file_request, x.file_request_offset, x.aggregate_size);
  if (!is_known(x.io_type)) archive.fail(DecodeError::bad_value);
}

template <typename A>
void fields(A& archive, StructOf<A, SmallIoRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, x.io_type, x.server_nr, x.server_ct, x.distribution,
              x.file_request, x.file_request_offset, x.aggregate_size, x.total_bytes, kPad4);
  if (!is_known(x.io_type)) archive.fail(DecodeError::bad_value);
  if (x.io_type == IoType::write) VPFS_FIELDS(archive, payload(x.data, x.total_bytes));
}

template <typename A>
void fields(A& archive, StructOf<A, IoResponse>& x) {
  VPFS_FIELDS(archive, x.bstream_size);
}

template <typename A>
void fields(A& archive, StructOf<A, SmallIoResponse>& x) {
  VPFS_FIELDS(archive, x.io_type, kPad4, x.bstream_size, x.result_size);
  if (!is_known(x.io_type)) archive.fail(DecodeError::bad_value);
  if (x.io_type == IoType::read) VPFS_FIELDS(archive, payload(x.data, x.result_size));
}

template <typename A>
void fields(A& archive, StructOf<A, WriteCompletionResponse>& x) {
  VPFS_FIELDS(archive, x.total_completed);
}

template <typename A>
void fields(A& archive, StructOf<A, MirrorRequest::Destination>& x) {
  VPFS_FIELDS(archive, x.handle, x.server_nr);
}
template <typename A>
void fields(A& archive, StructOf<A, MirrorRequest>& x) {
  VPFS_FIELDS(archive, x.source_handle, x.fs_id, x.distribution, x.byte_count, x.source_server_nr);
  if constexpr (A::kDecodes) {
    const std::uint32_t count = archive.count(kMinWireSize<MirrorRequest::Destination>);
    VPFS_FIELDS(archive, x.flow_type, x.encoding, array(x.destinations, count));
  } else {
    const auto count = static_cast<std::uint32_t>(x.destinations.size());
    VPFS_FIELDS(archive, count, x.flow_type, x.encoding, array(x.destinations, count));
  }
}

template <typename A>
void fields(A& archive, StructOf<A, MirrorResponse::Result>& x) {
  VPFS_FIELDS(archive, x.bytes_written, x.status);
}
template <typename A>
void fields(A& archive, StructOf<A, MirrorResponse>& x) {
  VPFS_FIELDS(archive, x.source_handle, x.source_server_nr, list(x.results));
}

}  // namespace vpfs::orangefs
