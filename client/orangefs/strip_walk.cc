#include "client/orangefs/strip_walk.h"

#include <algorithm>

namespace vpfs::client {
namespace {

constexpr std::int64_t kLargestEnd = std::int64_t{1} << 62;

}  // namespace

StripWalk::StripWalk(std::int64_t strip_size, orangefs::Placement placement, std::int64_t offset,
                     std::uint64_t size)
    : strip_size_(strip_size),
      placement_(placement),
      begin_(offset),
      end_(offset + static_cast<std::int64_t>(size)),
      at_(offset) {}

std::optional<StripWalk::Piece> StripWalk::next(std::uint64_t most) {
  std::int64_t strip_end = end_;
  if (strip_size_ > 0 && placement_.server_ct > 1) {
    const std::int64_t row = strip_size_ * placement_.server_ct;
    const std::int64_t strip_begin = at_ / row * row + strip_size_ * placement_.server_nr;
    if (at_ < strip_begin) at_ = strip_begin;
    if (at_ >= strip_begin + strip_size_) at_ = strip_begin + row;
    strip_end = at_ / strip_size_ * strip_size_ + strip_size_;
  }
  if (at_ >= end_ || most == 0) return std::nullopt;
  const std::int64_t size =
      std::min({strip_end - at_, end_ - at_,
                static_cast<std::int64_t>(std::min<std::uint64_t>(most, std::uint64_t{1} << 62))});
  const Piece piece{.position = static_cast<std::uint64_t>(at_ - begin_),
                    .size = static_cast<std::uint64_t>(size)};
  at_ += size;
  return piece;
}

std::int64_t logical_end(std::int64_t strip_size, orangefs::Placement placement,
                         std::int64_t size) {
  if (size <= 0 || strip_size == 0) return std::min(size, kLargestEnd);
  // More is a lie of the server, or the file is larger than any client can use.
  const std::int64_t most = kLargestEnd / std::max<std::int64_t>(placement.server_ct, 1);
  if (size > most || strip_size > most) return kLargestEnd;
  const std::int64_t last = size - 1;
  return last / strip_size * strip_size * placement.server_ct + strip_size * placement.server_nr +
         last % strip_size + 1;
}

}  // namespace vpfs::client
