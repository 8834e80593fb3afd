#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

// Data that say what they are: every block carries its file, offset, generation and a checksum, so
// that a read can tell any wrong, old, misplaced or damaged byte.
namespace vpfs::load {

inline constexpr std::uint64_t kBlock = 4096;
inline constexpr std::uint64_t kLeastBlock = 64;

// The size of the blocks in a request.
[[nodiscard]] constexpr std::uint64_t block_size(std::uint64_t request_size) {
  return std::min(request_size, kBlock);
}

struct BlockIdentity {
  std::uint64_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t generation = 0;  // how many times this place has been written
  bool operator==(const BlockIdentity&) const = default;
};

void fill_block(std::span<std::byte> block, const BlockIdentity& identity);

// Nothing when the block is exactly what fill_block() wrote; else a sentence that says how it is
// not.
[[nodiscard]] std::optional<std::string> find_damage(std::span<const std::byte> block,
                                                     const BlockIdentity& expected);

}  // namespace vpfs::load
