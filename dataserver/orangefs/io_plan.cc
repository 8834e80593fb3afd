#include "dataserver/orangefs/io_plan.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/result.h"
#include "dataserver/orangefs/permissions.h"
#include "dataserver/store/bstream_store.h"

namespace vpfs::dataserver {
namespace {

// Each run is looked up separately, while other requests wait.
constexpr std::int64_t kMostRuns = 4'000'000;

template <typename Body>
Outcome<IoPlan> plan(const Body& io, const orangefs::Request& request, const HandleRanges& ranges,
                     std::uint32_t self) {
  if (!HandleRanges::is_datafile(io.handle) || ranges.server_of(io.handle) != self) {
    return refuse(ENOENT);
  }
  const bool write = io.io_type == orangefs::IoType::write;
  const auto allowed = check_hinted(request, write ? orangefs::kCapWrite : orangefs::kCapRead);
  VPFS_TRY(allowed);
  if (io.file_request_offset < 0 || io.aggregate_size < 0) return refuse(EINVAL);
  const orangefs::IoFields fields = orangefs::fields_of(io);
  const orangefs::IoPart part = orangefs::part_of(fields, io.file_request.elements);
  if (!part.requested.exact || io.server_nr >= io.server_ct) return refuse(EOPNOTSUPP);
  const Outcome<std::int64_t> end = checked_end(part.begin, part.end - part.begin);
  VPFS_TRY(end);
  IoPlan made{
      .handle = io.handle, .type = io.io_type, .offset = part.begin, .size = part.requested.bytes};
  if (part.kind == orangefs::IoPart::Kind::sparse && made.size > 0) {
    made.sparse = orangefs::SparseIo::of(fields, io.file_request.elements);
    const auto span =
        made.sparse->datatype().span(made.sparse->range(), made.sparse->layout().limit());
    if (!span || span->runs > kMostRuns) return refuse(EOPNOTSUPP);
  }
  return made;
}

}  // namespace

std::int64_t IoPlan::readable(std::int64_t bstream_size) const {
  if (!sparse) return std::clamp<std::int64_t>(bstream_size - offset, 0, size);
  const orangefs::TransferSize known = sparse->readable(bstream_size);
  if (known.exact) return known.bytes;
  SegmentWalk walk(*this, bstream_size);
  std::int64_t bytes = 0;
  while (const std::int64_t more = walk.next(size).size) bytes += more;
  return bytes;
}

SegmentWalk::SegmentWalk(const IoPlan& plan, std::int64_t end)
    : sparse_(plan.sparse.get()), end_(end) {
  if (sparse_ != nullptr) {
    at_ = sparse_->range().offset;
    stop_ = at_ + sparse_->range().size;
  } else {
    run_ = {.offset = plan.offset,
            .size = std::clamp<std::int64_t>(end - plan.offset, 0, plan.size)};
  }
}

SegmentWalk::SegmentWalk(const IoPlan& plan)
    : SegmentWalk(plan, std::numeric_limits<std::int64_t>::max()) {}

void SegmentWalk::find_run() {
  const orangefs::Datatype::Run run = sparse_->datatype().run_at(at_);
  const std::int64_t size = std::min(run.size, stop_ - at_);
  const std::int64_t begin = sparse_->layout().below(run.logical);
  const std::int64_t end = sparse_->layout().below(run.logical + size);
  run_ = {.offset = begin, .size = std::clamp<std::int64_t>(end_ - begin, 0, end - begin)};
  at_ = end > begin && end > end_ ? stop_ : at_ + size;
}

SegmentWalk::Segment SegmentWalk::next(std::int64_t most) {
  while (run_.size == 0 && at_ < stop_) find_run();
  const Segment segment{.offset = run_.offset, .size = std::min(run_.size, most)};
  run_.offset += segment.size;
  run_.size -= segment.size;
  return segment;
}

Outcome<IoPlan> plan_io(const orangefs::IoRequestBody& io, const orangefs::Request& request,
                        const HandleRanges& ranges, std::uint32_t self) {
  return plan(io, request, ranges, self);
}
Outcome<IoPlan> plan_io(const orangefs::SmallIoRequest& io, const orangefs::Request& request,
                        const HandleRanges& ranges, std::uint32_t self) {
  return plan(io, request, ranges, self);
}

}  // namespace vpfs::dataserver
