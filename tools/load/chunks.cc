#include "tools/load/chunks.h"

#include <algorithm>

namespace vpfs::load {

std::vector<ChunkPart> chunk_parts(std::uint64_t offset, std::uint64_t size, std::size_t targets) {
  if (targets == 1) return {{.target = 0, .offset = offset, .at = 0, .size = size}};
  std::vector<ChunkPart> parts;
  for (std::uint64_t at = 0; at < size; at += parts.back().size) {
    const std::uint64_t chunk = (offset + at) / kChunk;
    const std::uint64_t within = (offset + at) % kChunk;
    parts.push_back({.target = static_cast<std::size_t>(chunk % targets),
                     .offset = chunk / targets * kChunk + within,
                     .at = at,
                     .size = std::min(kChunk - within, size - at)});
  }
  return parts;
}

}  // namespace vpfs::load
