#include "client/orangefs/directory_hash.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/byte_reader.h"
#include "base/byte_writer.h"

namespace vpfs::client {
namespace {

constexpr std::size_t kBlock = 64;
using Words = std::array<std::uint32_t, 4>;

// Step i adds floor(2^32 * |sin(i + 1)|).
std::array<std::uint32_t, 64> sine_table() {
  std::array<std::uint32_t, 64> table = {};
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<std::uint32_t>(
        std::floor(std::abs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
  }
  return table;
}

void mix(Words& state, std::span<const std::byte> block) {
  static const std::array<std::uint32_t, 64> kSines = sine_table();
  constexpr std::array<std::array<int, 4>, 4> kRotations = {
      {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};
  std::array<std::uint32_t, 16> input = {};
  ByteReader in(block);
  for (std::uint32_t& word : input) word = in.u32();
  auto [a, b, c, d] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t f = 0;
    std::size_t chosen = 0;
    switch (i / 16) {
      case 0:
        f = (b & c) | (~b & d);
        chosen = i;
        break;
      case 1:
        f = (d & b) | (~d & c);
        chosen = (5 * i + 1) % 16;
        break;
      case 2:
        f = b ^ c ^ d;
        chosen = (3 * i + 5) % 16;
        break;
      default:
        f = c ^ (b | ~d);
        chosen = 7 * i % 16;
        break;
    }
    const std::uint32_t rotated =
        std::rotl(a + f + kSines[i] + input[chosen], kRotations[i / 16][i % 4]);
    a = d;
    d = c;
    c = b;
    b += rotated;
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

}  // namespace

std::array<std::byte, 16> md5(std::span<const std::byte> text) {
  std::vector<std::byte> padded(text.begin(), text.end());
  padded.push_back(std::byte{0x80});
  while (padded.size() % kBlock != kBlock - 8) padded.push_back(std::byte{0});
  ByteWriter(padded).u64(std::uint64_t{text.size()} * 8);

  Words state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (std::size_t at = 0; at < padded.size(); at += kBlock) {
    mix(state, std::span(padded).subspan(at, kBlock));
  }
  std::array<std::byte, 16> digest = {};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>(state[i / 4] >> (8 * (i % 4)) & 0xffU);
  }
  return digest;
}

orangefs::Handle dirdata_of(const orangefs::DistributedDirectory& directory,
                            std::string_view name) {
  const std::vector<orangefs::Handle>& places = directory.dirdata_handles;
  const std::array<std::byte, 16> digest = md5(std::as_bytes(std::span(name)));
  const std::uint64_t hash = ByteReader(std::span(digest).subspan(8)).u64();
  const auto active = [&](std::uint64_t bucket) {
    const std::size_t word = static_cast<std::size_t>(bucket / 32);
    return bucket < places.size() && word < directory.bitmap.size() &&
           (directory.bitmap[word] >> (bucket % 32) & 1U) != 0;
  };
  for (int level = std::min(directory.tree_height, 31); level > 0; --level) {
    const std::uint64_t bucket = hash & ((std::uint64_t{1} << level) - 1);
    if (active(bucket)) return places[static_cast<std::size_t>(bucket)];
  }
  return places.front();
}

}  // namespace vpfs::client
