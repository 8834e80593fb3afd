#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace vpfs::load {

// A BeeGFS file is striped over its targets in chunks of this size, the default of BeeGFS.
inline constexpr std::uint64_t kChunk = 512 * kKiB;

// What a request does at one of the file's targets.
struct ChunkPart {
  std::size_t target = 0;    // index among the file's targets
  std::uint64_t offset = 0;  // in the chunk file of that target
  std::uint64_t at = 0;      // in the request
  std::uint64_t size = 0;
  bool operator==(const ChunkPart&) const = default;
};

// The parts of a request, in its order. A file of one target is not divided.
[[nodiscard]] std::vector<ChunkPart> chunk_parts(std::uint64_t offset, std::uint64_t size,
                                                 std::size_t targets);

}  // namespace vpfs::load
