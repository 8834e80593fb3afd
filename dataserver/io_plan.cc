#include "dataserver/io_plan.h"

#include <algorithm>
#include <cerrno>

#include "dataserver/bstream_store.h"
#include "dataserver/permissions.h"
#include "protocols/pvfs2/striping.h"

namespace vpfs::dataserver {
namespace {

template <typename Body>
Outcome<IoPlan> plan(const Body& io, const pvfs2::Request& request, const HandleRanges& ranges,
                     std::uint32_t self) {
  if (!HandleRanges::is_datafile(io.handle) || ranges.server_of(io.handle) != self) {
    return refuse(ENOENT);
  }
  const bool write = io.io_type == pvfs2::IoType::write;
  if (const auto status = check_hinted(request, write ? pvfs2::kCapWrite : pvfs2::kCapRead)) {
    return std::unexpected(status);
  }
  if (io.file_request_offset < 0 || io.aggregate_size < 0) return refuse(EINVAL);
  const pvfs2::TransferSize size = pvfs2::requested_bytes(io);
  const pvfs2::Placement placement{.server_nr = io.server_nr, .server_ct = io.server_ct};
  if (!size.exact || io.server_nr >= io.server_ct) return refuse(EOPNOTSUPP);
  const auto offset = pvfs2::physical_offset(io.distribution, placement, io.file_request_offset);
  if (!offset) return refuse(EOPNOTSUPP);
  const Outcome<std::int64_t> end = checked_end(*offset, size.bytes);
  if (!end) return std::unexpected(end.error());
  return IoPlan{.handle = io.handle, .type = io.io_type, .offset = *offset, .size = size.bytes};
}

}  // namespace

std::int64_t IoPlan::readable(std::int64_t bstream_size) const {
  return std::clamp<std::int64_t>(bstream_size - offset, 0, size);
}

Outcome<IoPlan> plan_io(const pvfs2::IoRequestBody& io, const pvfs2::Request& request,
                        const HandleRanges& ranges, std::uint32_t self) {
  return plan(io, request, ranges, self);
}
Outcome<IoPlan> plan_io(const pvfs2::SmallIoRequest& io, const pvfs2::Request& request,
                        const HandleRanges& ranges, std::uint32_t self) {
  return plan(io, request, ranges, self);
}

}  // namespace vpfs::dataserver
