#include "protocols/pvfs2/striping.h"

#include <algorithm>
#include <limits>

namespace vpfs::pvfs2 {
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

bool is_sane(const FileRange& range) {
  return range.offset >= 0 && range.size >= 0 && range.offset <= kMaxInt64 - range.size;
}

struct PhysicalRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
// The run of datafile bytes that holds a sane range, where that is known exactly.
std::optional<PhysicalRange> physical_range(const Distribution& distribution, Placement placement,
                                            const FileRange& range) {
  if (!range.dense) return std::nullopt;
  const auto begin = physical_offset(distribution, placement, range.offset);
  const auto end = physical_offset(distribution, placement, range.offset + range.size);
  if (!begin || !end) return std::nullopt;
  return PhysicalRange{.begin = *begin, .end = *end};
}

template <typename Io>
FileRange range_of(const Io& io) {
  return {.dense = io.file_request.dense(),
          .offset = io.file_request_offset,
          .size = io.aggregate_size};
}
template <typename Io>
Placement placement_of(const Io& io) {
  return {.server_nr = io.server_nr, .server_ct = io.server_ct};
}

}  // namespace

std::optional<std::int64_t> physical_offset(const Distribution& distribution, Placement placement,
                                            std::int64_t logical) {
  if (logical < 0) return std::nullopt;
  if (std::holds_alternative<BasicDistribution>(distribution)) return logical;
  const auto* stripe = std::get_if<SimpleStripe>(&distribution);
  if (stripe == nullptr) return std::nullopt;
  return physical_offset(*stripe, placement, logical);
}

TransferSize requested_bytes(const Distribution& distribution, Placement placement,
                             const FileRange& range) {
  if (!is_sane(range)) return {.bytes = 0, .exact = false};
  const auto physical = physical_range(distribution, placement, range);
  if (!physical) return {.bytes = range.size, .exact = false};
  return {.bytes = physical->end - physical->begin, .exact = true};
}

TransferSize readable_bytes(const Distribution& distribution, Placement placement,
                            const FileRange& range, std::int64_t bstream_size) {
  if (!is_sane(range)) return {.bytes = 0, .exact = false};
  const auto physical = physical_range(distribution, placement, range);
  if (!physical) return {.bytes = range.size, .exact = false};
  const std::int64_t end = std::min(physical->end, bstream_size);
  return {.bytes = end > physical->begin ? end - physical->begin : 0, .exact = true};
}

TransferSize requested_bytes(const IoRequestBody& io) {
  return requested_bytes(io.distribution, placement_of(io), range_of(io));
}
TransferSize requested_bytes(const SmallIoRequest& io) {
  return requested_bytes(io.distribution, placement_of(io), range_of(io));
}
TransferSize readable_bytes(const IoRequestBody& io, std::int64_t bstream_size) {
  return readable_bytes(io.distribution, placement_of(io), range_of(io), bstream_size);
}
TransferSize readable_bytes(const SmallIoRequest& io, std::int64_t bstream_size) {
  return readable_bytes(io.distribution, placement_of(io), range_of(io), bstream_size);
}

}  // namespace vpfs::pvfs2
