// The operations on the server itself.

#include <cerrno>
#include <utility>

#include <sys/sysinfo.h>

#include "dataserver/orangefs/operations.h"

namespace vpfs::dataserver {
namespace {

using orangefs::Op;
using orangefs::Response;

// The parameters of MGMT_SETPARAM that pvfs2-ping asks about.
constexpr std::int32_t kFileSystemCheck = 2;
constexpr std::int32_t kRootCheck = 3;

// The iteration of MGMT_ITERATE_HANDLES.
constexpr std::uint64_t kIterateStart = 0x7ffffffe;
constexpr std::uint64_t kIterateEnd = 0x7ffffffd;

}  // namespace

Operations::Reply Operations::run(const orangefs::EmptyRequest& body, const Request& /*request*/) {
  if (body.op == Op::mgmt_noop) return ready(answer(body.op, 0));
  if (body.op != Op::getconfig) return ready(failure(body.op, status_of(ENOSYS)));
  const std::string& text = context_.config_text;
  return ready(Response{.status = 0,
                        .body = orangefs::GetconfigResponse{
                            .size = static_cast<std::uint32_t>(text.size() + 1), .config = text}});
}

Operations::Reply Operations::run(const orangefs::StatfsRequest& body, const Request& /*request*/) {
  const BstreamStore::Space space = context_.bstreams.space();
  struct sysinfo system = {};
  ::sysinfo(&system);
  const std::uint64_t unit = system.mem_unit;
  const std::uint64_t handles = context_.ranges.serial_limit();
  return ready(Response{
      .status = 0,
      .body = orangefs::StatfsResponse{.fs_id = body.fs_id,
                                       .bytes_available = space.available.count,
                                       .bytes_total = space.total.count,
                                       .ram_total_bytes = system.totalram * unit,
                                       .ram_free_bytes = system.freeram * unit,
                                       .load_1 = system.loads[0],
                                       .load_5 = system.loads[1],
                                       .load_15 = system.loads[2],
                                       .uptime_seconds = static_cast<std::uint64_t>(system.uptime),
                                       .handles_available = handles,
                                       .handles_total = handles}});
}

Operations::Reply Operations::run(const orangefs::MgmtSetparamRequest& body,
                                  const Request& /*request*/) {
  if (body.parameter == kFileSystemCheck) {
    const bool ours = std::cmp_equal(body.number, context_.config.id);
    return ready(answer(Op::mgmt_setparam, ours ? 0 : status_of(ENODEV)));
  }
  if (body.parameter == kRootCheck) {
    const bool here = body.number == HandleRanges::kRoot && is_ours(body.number);
    return ready(answer(Op::mgmt_setparam, here ? 0 : status_of(ENOENT)));
  }
  return ready(failure(Op::mgmt_setparam, status_of(ENOSYS)));
}

Operations::Reply Operations::run(const orangefs::MgmtIterateHandlesRequest& body,
                                  const Request& /*request*/) {
  constexpr std::uint32_t kMostAtOnce = 1000;
  orangefs::MgmtIterateHandlesResponse list;
  list.position = kIterateEnd;
  const bool reserved_only = body.flags != 0;
  if (reserved_only || body.position == kIterateEnd || body.handle_count <= 0) {
    return ready(Response{.status = 0, .body = std::move(list)});
  }
  const orangefs::Handle from = body.position == kIterateStart ? 0 : body.position;
  const auto limit = std::min(static_cast<std::uint32_t>(body.handle_count), kMostAtOnce);
  Outcome<std::vector<orangefs::Handle>> handles = context_.metadata.handles(from, limit);
  if (!handles) return ready(failure(Op::mgmt_iterate_handles, handles.error()));
  if (handles->size() == limit) list.position = handles->back() + 1;
  list.handles = std::move(*handles);
  return ready(Response{.status = 0, .body = std::move(list)});
}

}  // namespace vpfs::dataserver
