#include "protocols/orangefs/striping.h"

#include <algorithm>
#include <limits>

namespace vpfs::orangefs {
namespace {

constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

std::optional<std::int64_t> physical_offset(const SimpleStripe& stripe, Placement placement,
                                            std::int64_t logical) {
  const std::int64_t strip = stripe.strip_size;
  if (strip <= 0 || placement.server_nr >= placement.server_ct) return std::nullopt;
  if (strip > kMaxInt64 / placement.server_ct) return std::nullopt;
  const std::int64_t whole_stripes = logical / (strip * placement.server_ct);
  const std::int64_t rest = logical % (strip * placement.server_ct);
  return whole_stripes * strip +
         std::clamp<std::int64_t>(rest - placement.server_nr * strip, 0, strip);
}

// The usual distributions need no DatafileLayout, which is larger than a request.
std::optional<std::int64_t> physical_offset(const Distribution& distribution,
                                            std::string_view strips, Placement placement,
                                            std::int64_t logical) {
  if (logical < 0) return std::nullopt;
  if (std::holds_alternative<BasicDistribution>(distribution)) return logical;
  if (const auto* stripe = std::get_if<SimpleStripe>(&distribution)) {
    return physical_offset(*stripe, placement, logical);
  }
  const auto layout = DatafileLayout::of(distribution, strips, placement);
  if (!layout || logical > layout->limit()) return std::nullopt;
  return layout->below(logical);
}

bool is_sane(const IoFields& io) {
  return io.offset >= 0 && io.size >= 0 && io.offset <= kMaxInt64 - io.size;
}

IoPart unknown_part(std::int64_t most) {
  return {.requested = {.bytes = most, .exact = false}};
}

IoPart dense_part(const IoFields& io, std::int64_t start) {
  if (start > kMaxInt64 - io.offset - io.size) return unknown_part(io.size);
  const std::int64_t first = start + io.offset;
  const auto begin = physical_offset(io.distribution, io.strips, io.placement, first);
  const auto end = physical_offset(io.distribution, io.strips, io.placement, first + io.size);
  if (!begin || !end) return unknown_part(io.size);
  return {.kind = IoPart::Kind::dense,
          .requested = {.bytes = *end - *begin, .exact = true},
          .begin = *begin,
          .end = *end};
}

Datatype::Range range_of(const IoFields& io) {
  return {.offset = io.offset, .size = io.size};
}

IoPart sparse_part(const IoFields& io, const DatafileLayout& layout, const Datatype& datatype) {
  if (io.size == 0) return {.kind = IoPart::Kind::sparse};
  const auto span = datatype.span(range_of(io), layout.limit());
  if (!span) return unknown_part(io.size);
  const auto bytes = datatype.count(range_of(io), layout, layout.limit());
  if (!bytes) return unknown_part(io.size);
  return {.kind = IoPart::Kind::sparse,
          .ordered = span->ordered,
          .requested = {.bytes = *bytes, .exact = true},
          .begin = layout.below(span->low),
          .end = layout.below(span->high)};
}

template <typename Elements>
IoPart part_of_sparse(const IoFields& io, const Elements& elements) {
  const auto layout = DatafileLayout::of(io.distribution, io.strips, io.placement);
  if (!layout) return unknown_part(io.size);
  Datatype::Storage storage;
  const auto datatype = Datatype::check(elements, storage);
  return datatype ? sparse_part(io, *layout, *datatype) : unknown_part(io.size);
}

template <typename Elements>
IoPart part(const IoFields& io, const Elements& elements) {
  if (!is_sane(io)) return unknown_part(0);
  if (const auto start = dense_start(elements)) return dense_part(io, *start);
  return part_of_sparse(io, elements);
}

template <typename Io>
IoFields fields(const Io& io) {
  const auto* varying = std::get_if<VarStrip>(&io.distribution);
  return {.distribution = io.distribution,
          .strips = varying == nullptr ? std::string_view() : varying->strips,
          .placement = {.server_nr = io.server_nr, .server_ct = io.server_ct},
          .offset = io.file_request_offset,
          .size = io.aggregate_size};
}

template <typename Io>
TransferSize readable(const Io& io, std::int64_t bstream_size) {
  const std::span<const FileRequestElement> elements = io.file_request.elements;
  const IoPart found = part(fields(io), elements);
  if (const auto size = found.readable(bstream_size)) return *size;
  return SparseIo::of(fields(io), elements)->readable(bstream_size);
}

}  // namespace

std::optional<std::int64_t> physical_offset(const Distribution& distribution, Placement placement,
                                            std::int64_t logical) {
  const auto* varying = std::get_if<VarStrip>(&distribution);
  return physical_offset(distribution, varying == nullptr ? std::string_view() : varying->strips,
                         placement, logical);
}

std::optional<TransferSize> IoPart::readable(std::int64_t bstream_size) const {
  if (kind == Kind::unknown) return requested;
  if (kind == Kind::dense) {
    return TransferSize{.bytes = std::max<std::int64_t>(std::min(end, bstream_size) - begin, 0)};
  }
  if (bstream_size <= begin || requested.bytes == 0) return TransferSize{};
  if (bstream_size > end || (ordered && bstream_size == end)) return requested;
  if (!ordered) return TransferSize{.bytes = requested.bytes, .exact = false};
  return std::nullopt;
}

IoPart part_of(const IoFields& io, const WireElements& elements) {
  return part(io, elements);
}
IoPart part_of(const IoFields& io, std::span<const FileRequestElement> elements) {
  return part(io, elements);
}

SparseIo::SparseIo(const IoPart& part, const DatafileLayout& layout, const Datatype& datatype,
                   const Datatype::Range& range)
    : part_(part),
      layout_(layout),
      range_(range),
      nodes_(datatype.nodes().begin(), datatype.nodes().end()) {}

template <typename Elements>
std::unique_ptr<SparseIo> SparseIo::made_of(const IoFields& io, const Elements& elements) {
  if (!is_sane(io) || dense_start(elements)) return nullptr;
  const auto layout = DatafileLayout::of(io.distribution, io.strips, io.placement);
  if (!layout) return nullptr;
  Datatype::Storage storage;
  const auto datatype = Datatype::check(elements, storage);
  if (!datatype) return nullptr;
  const IoPart part = sparse_part(io, *layout, *datatype);
  if (part.kind != IoPart::Kind::sparse) return nullptr;
  return std::unique_ptr<SparseIo>(new SparseIo(part, *layout, *datatype, range_of(io)));
}

std::unique_ptr<SparseIo> SparseIo::of(const IoFields& io, const WireElements& elements) {
  return made_of(io, elements);
}
std::unique_ptr<SparseIo> SparseIo::of(const IoFields& io,
                                       std::span<const FileRequestElement> elements) {
  return made_of(io, elements);
}

TransferSize SparseIo::readable(std::int64_t bstream_size) const {
  if (const auto size = part_.readable(bstream_size)) return *size;
  const auto bytes = datatype().count(range_, layout_, layout_.logical_end(bstream_size));
  if (!bytes) return {.bytes = part_.requested.bytes, .exact = false};
  return {.bytes = *bytes, .exact = true};
}

IoFields fields_of(const IoRequestBody& io) {
  return fields(io);
}
IoFields fields_of(const SmallIoRequest& io) {
  return fields(io);
}

TransferSize requested_bytes(const IoRequestBody& io) {
  return part_of(fields(io), io.file_request.elements).requested;
}
TransferSize requested_bytes(const SmallIoRequest& io) {
  return part_of(fields(io), io.file_request.elements).requested;
}
TransferSize readable_bytes(const IoRequestBody& io, std::int64_t bstream_size) {
  return readable(io, bstream_size);
}
TransferSize readable_bytes(const SmallIoRequest& io, std::int64_t bstream_size) {
  return readable(io, bstream_size);
}

}  // namespace vpfs::orangefs
