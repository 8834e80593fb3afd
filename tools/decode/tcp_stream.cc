#include "tools/decode/tcp_stream.h"

#include <utility>

namespace vpfs {

std::span<const std::byte> TcpStream::add(const TcpSegment& segment) {
  ready_.clear();
  const std::uint32_t first = segment.sequence + (segment.syn ? 1 : 0);
  if (!start_) start_ = first;
  if (segment.payload.empty()) return {};
  // Sequence numbers wrap: read the difference to what is expected as a signed number.
  const auto distance =
      static_cast<std::int32_t>(first - (*start_ + static_cast<std::uint32_t>(next_)));
  const std::int64_t offset = static_cast<std::int64_t>(next_) + distance;
  std::span<const std::byte> payload = segment.payload;
  if (offset < 0) return {};  // from before the capture began
  std::vector<std::byte>& kept = early_[static_cast<std::uint64_t>(offset)];
  if (kept.size() < payload.size()) kept.assign(payload.begin(), payload.end());
  while (!early_.empty() && early_.begin()->first <= next_) {
    const auto [begin, bytes] = std::move(*early_.begin());
    early_.erase(early_.begin());
    const std::uint64_t known = next_ - begin;
    if (known >= bytes.size()) continue;
    ready_.insert(ready_.end(), bytes.begin() + static_cast<std::ptrdiff_t>(known), bytes.end());
    next_ = begin + bytes.size();
  }
  return ready_;
}

std::optional<TcpStream::Gap> TcpStream::gap() const {
  if (early_.empty()) return std::nullopt;
  Gap gap{.offset = next_, .missing = early_.begin()->first - next_};
  for (const auto& [offset, bytes] : early_) gap.bytes_beyond += bytes.size();
  return gap;
}

}  // namespace vpfs
