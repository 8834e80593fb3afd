#include "dataserver/store/memory_bstream_store.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "base/result.h"

namespace vpfs::dataserver {
namespace {

constexpr std::size_t kPageSize = 4096;
constexpr std::size_t kChunkSize = MemoryBstreamStore::kChunkSize;

// What reads of holes hand out.
alignas(kPageSize) const std::array<std::byte, kChunkSize> kZeros = {};

// The pieces of [offset, offset + size) by chunk: calls each(chunk index, offset in it, size).
template <typename Each>
void for_each_piece(std::int64_t offset, std::size_t size, Each each) {
  auto position = static_cast<std::uint64_t>(offset);
  while (size > 0) {
    const std::uint64_t index = position / kChunkSize;
    const std::size_t within = position % kChunkSize;
    const std::size_t piece = std::min(size, kChunkSize - within);
    each(index, within, piece);
    position += piece;
    size -= piece;
  }
}

std::size_t page_end(std::size_t offset) {
  return (offset + kPageSize - 1) / kPageSize * kPageSize;
}

}  // namespace

// Zeros at first.
class MemoryBstreamStore::Chunk {
 public:
  Chunk()
      : bytes_(static_cast<std::byte*>(::mmap(nullptr, kChunkSize, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    if (bytes_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Chunk() { ::munmap(bytes_, kChunkSize); }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  [[nodiscard]] std::span<std::byte> bytes(std::size_t offset, std::size_t size) {
    return std::span(bytes_, kChunkSize).subspan(offset, size);
  }
  // How many bytes of it count against the capacity.
  [[nodiscard]] std::size_t counted() const { return counted_; }
  void count(std::size_t size) { counted_ = size; }

 private:
  std::byte* bytes_;
  std::size_t counted_ = 0;
};

Outcome<std::int64_t> MemoryBstreamStore::size(BstreamId id) {
  const auto found = bstreams_.find(id);
  return found == bstreams_.end() ? 0 : found->second.size;
}

net::Task<Outcome<std::vector<BstreamStore::Part>>> MemoryBstreamStore::read(BstreamId id,
                                                                             std::int64_t offset,
                                                                             std::size_t size) {
  std::vector<Part> parts;
  const auto found = bstreams_.find(id);
  for_each_piece(offset, size, [&](std::uint64_t index, std::size_t within, std::size_t piece) {
    if (found != bstreams_.end()) {
      const auto chunk = found->second.chunks.find(index);
      if (chunk != found->second.chunks.end()) {
        parts.push_back({.bytes = chunk->second->bytes(within, piece), .owner = chunk->second});
        return;
      }
    }
    parts.push_back({.bytes = std::span(kZeros).first(piece), .owner = nullptr});
  });
  co_return parts;
}

net::Task<Outcome<BstreamStore::Window>> MemoryBstreamStore::open_window(BstreamId id,
                                                                         std::int64_t offset,
                                                                         std::size_t size) {
  const Outcome<std::int64_t> end = checked_end(offset, static_cast<std::int64_t>(size));
  VPFS_CO_TRY(end);
  Bstream& bstream = bstreams_[id];
  Bytes more;
  for_each_piece(offset, size, [&](std::uint64_t index, std::size_t within, std::size_t piece) {
    const auto found = bstream.chunks.find(index);
    const std::size_t counted = found == bstream.chunks.end() ? 0 : found->second->counted();
    more.count += std::max(page_end(within + piece), counted) - counted;
  });
  if (used_ + more > capacity_) co_return refuse(ENOSPC);
  used_ += more;

  Window window{.id = id, .offset = offset, .size = size, .parts = {}, .owners = {}};
  for_each_piece(offset, size, [&](std::uint64_t index, std::size_t within, std::size_t piece) {
    std::shared_ptr<Chunk>& chunk = bstream.chunks[index];
    if (!chunk) chunk = std::make_shared<Chunk>();
    chunk->count(std::max(page_end(within + piece), chunk->counted()));
    window.parts.push_back(chunk->bytes(within, piece));
    window.owners.push_back(chunk);
  });
  co_return window;
}

net::Task<Outcome<void>> MemoryBstreamStore::commit(Window window) {
  // A bstream that was removed meanwhile stays removed.
  if (const auto found = bstreams_.find(window.id); found != bstreams_.end()) {
    Bstream& bstream = found->second;
    std::size_t part = 0;
    for_each_piece(window.offset, window.size,
                   [&](std::uint64_t index, std::size_t within, std::size_t piece) {
                     std::shared_ptr<Chunk>& chunk = bstream.chunks[index];
                     const std::span<const std::byte> bytes = window.parts[part];
                     if (chunk == window.owners[part++]) return;
                     // A truncation took the chunk of the window away while its data arrived.
                     if (!chunk) chunk = std::make_shared<Chunk>();
                     const std::size_t before = chunk->counted();
                     chunk->count(std::max(page_end(within + piece), before));
                     used_ += Bytes{chunk->counted() - before};
                     std::ranges::copy(bytes, chunk->bytes(within, piece).begin());
                   });
    bstream.size = std::max(bstream.size, window.offset + static_cast<std::int64_t>(window.size));
  }
  co_return Outcome<void>();
}

void MemoryBstreamStore::abandon(Window window) {
  // Bytes past the end must be zeros in case the bstream grows over them.
  const Outcome<std::int64_t> end = size(window.id);
  std::int64_t position = window.offset;
  for (const std::span<std::byte> part : window.parts) {
    const std::int64_t keep = std::clamp<std::int64_t>(end.value_or(0) - position, 0,
                                                       static_cast<std::int64_t>(part.size()));
    const std::span<std::byte> past = part.subspan(static_cast<std::size_t>(keep));
    if (!past.empty()) std::memset(past.data(), 0, past.size());
    position += static_cast<std::int64_t>(part.size());
  }
}

void MemoryBstreamStore::drop_chunks(Bstream& bstream, std::uint64_t first_index) {
  const auto first = bstream.chunks.lower_bound(first_index);
  for (auto chunk = first; chunk != bstream.chunks.end(); ++chunk) {
    used_ -= Bytes{chunk->second->counted()};
  }
  bstream.chunks.erase(first, bstream.chunks.end());
}

Outcome<void> MemoryBstreamStore::truncate(BstreamId id, std::int64_t size) {
  VPFS_TRY(checked_end(0, size));
  Bstream& bstream = bstreams_[id];
  if (size < bstream.size) {
    const auto end = static_cast<std::uint64_t>(size);
    drop_chunks(bstream, (end + kChunkSize - 1) / kChunkSize);
    if (const auto last = bstream.chunks.find(end / kChunkSize); last != bstream.chunks.end()) {
      // Reads under way keep the old chunk; commits under way notice that theirs was replaced.
      const std::size_t within = end % kChunkSize;
      const auto kept = std::make_shared<Chunk>();
      std::ranges::copy(last->second->bytes(0, within), kept->bytes(0, within).begin());
      kept->count(std::min(page_end(within), last->second->counted()));
      used_ -= Bytes{last->second->counted() - kept->counted()};
      last->second = kept;
    }
  }
  bstream.size = size;
  return {};
}

Outcome<void> MemoryBstreamStore::remove(BstreamId id) {
  const auto found = bstreams_.find(id);
  if (found == bstreams_.end()) return {};
  drop_chunks(found->second, 0);
  bstreams_.erase(found);
  return {};
}

net::Task<Outcome<void>> MemoryBstreamStore::flush(BstreamId /*id*/) {
  co_return Outcome<void>();
}

BstreamStore::Space MemoryBstreamStore::space() {
  return {.total = capacity_, .available = capacity_ - used_};
}

}  // namespace vpfs::dataserver
