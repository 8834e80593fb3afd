#include "tools/load/block_pattern.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace vpfs::load {
namespace {

constexpr std::uint64_t kMagic = 0x6b636f6c42534650;  // "PFSBlock"
constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;

// At the beginning of every block, in the byte order of this machine.
struct Header {
  std::uint64_t magic = kMagic;
  BlockIdentity identity;
  std::uint64_t checksum = 0;  // of the identity and everything behind the header
};

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  return std::rotl((hash ^ word) * kOdd, 29);
}

std::uint64_t hash_of(const BlockIdentity& identity) {
  return mixed(mixed(mixed(kMagic, identity.file), identity.offset), identity.generation);
}

std::uint64_t checksum_of(const BlockIdentity& identity, std::span<const std::byte> body) {
  std::uint64_t hash = hash_of(identity);
  while (!body.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(body.size(), sizeof word);
    std::memcpy(&word, body.data(), size);
    hash = mixed(hash, word);
    body = body.subspan(size);
  }
  return hash;
}

std::string describe(const BlockIdentity& identity) {
  return fmt::format("file {:016x} offset {} generation {}", identity.file, identity.offset,
                     identity.generation);
}

}  // namespace

void fill_block(std::span<std::byte> block, const BlockIdentity& identity) {
  Header header{.identity = identity};
  const std::span<std::byte> body = block.subspan(sizeof header);
  std::uint64_t state = hash_of(identity);
  for (std::size_t at = 0; at < body.size(); at += sizeof state) {
    state = state * kOdd + 1;
    std::memcpy(body.data() + at, &state, std::min(body.size() - at, sizeof state));
  }
  header.checksum = checksum_of(identity, body);
  std::memcpy(block.data(), &header, sizeof header);
}

std::optional<std::string> find_damage(std::span<const std::byte> block,
                                       const BlockIdentity& expected) {
  Header header;
  std::memcpy(&header, block.data(), sizeof header);
  if (header.magic != kMagic) {
    return fmt::format("expected {}, found no block (it begins with {:016x})", describe(expected),
                       header.magic);
  }
  const std::uint64_t checksum = checksum_of(header.identity, block.subspan(sizeof header));
  if (header.checksum != checksum) {
    return fmt::format("expected {}, found {} with checksum {:016x} over data of {:016x}",
                       describe(expected), describe(header.identity), header.checksum, checksum);
  }
  if (header.identity != expected) {
    return fmt::format("expected {}, found {}", describe(expected), describe(header.identity));
  }
  return std::nullopt;
}

}  // namespace vpfs::load
