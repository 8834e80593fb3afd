#include "dataserver/orangefs/handle_ranges.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::dataserver {
namespace {
// Serial numbers begin at a count of milliseconds since 2024; this many bits last 139 years.
constexpr int kTimeBits = 42;
constexpr std::int64_t kStartOf2024 = 1704067200000;
}  // namespace

HandleRanges::HandleRanges(std::uint32_t servers)
    : servers_(servers),
      meta_width_((kFirstData - kFirstMeta) / servers),
      data_width_((kEndData - kFirstData) / servers),
      part_width_(data_width_ / servers) {}

orangefs::HandleExtent HandleRanges::meta(std::uint32_t server) const {
  const orangefs::Handle first = kFirstMeta + server * meta_width_;
  return {.first = first, .last = first + meta_width_ - 1};
}

orangefs::HandleExtent HandleRanges::data(std::uint32_t server) const {
  const orangefs::Handle first = kFirstData + server * data_width_;
  return {.first = first, .last = first + data_width_ - 1};
}

std::optional<std::uint32_t> HandleRanges::server_of(orangefs::Handle handle) const {
  if (handle < kFirstMeta || handle >= kEndData) return std::nullopt;
  const std::uint64_t server = is_datafile(handle) ? (handle - kFirstData) / data_width_
                                                   : (handle - kFirstMeta) / meta_width_;
  if (server >= servers_) return std::nullopt;
  return static_cast<std::uint32_t>(server);
}

orangefs::Handle HandleRanges::meta_handle(std::uint32_t server, std::uint64_t serial) const {
  VPFS_ASSERT(serial < part_width_);
  return meta(server).first + serial;
}

orangefs::Handle HandleRanges::datafile_handle(std::uint32_t meta_server, std::uint32_t data_server,
                                               std::uint64_t serial) const {
  VPFS_ASSERT(serial < part_width_);
  return data(data_server).first + meta_server * part_width_ + serial;
}

std::uint64_t HandleRanges::first_serial(std::int64_t epoch_milliseconds) const {
  const std::int64_t since = std::max<std::int64_t>(epoch_milliseconds - kStartOf2024, 0);
  const std::uint64_t ticks =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(since), (1ULL << kTimeBits) - 1);
  const std::uint64_t serial = ticks * (part_width_ >> kTimeBits);
  return std::max<std::uint64_t>(serial, 2 * kRoot);
}

}  // namespace vpfs::dataserver
