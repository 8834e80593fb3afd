#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/byte_reader.h"

namespace vpfs::test {

// The bytes of a fuzzer as a row of choices. Past their end every choice is zero.
class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size)
      : in_(std::as_bytes(std::span(data, size))) {}

  [[nodiscard]] bool empty() const { return in_.remaining() == 0; }
  [[nodiscard]] std::uint8_t u8() { return in_.u8(); }
  [[nodiscard]] std::uint16_t u16() { return in_.u16(); }
  [[nodiscard]] std::uint64_t u64() { return in_.u64(); }
  [[nodiscard]] std::size_t below(std::size_t bound) { return u8() % bound; }
  // Small, about a limit of the wire format, or anything.
  [[nodiscard]] std::uint64_t size() {
    const std::uint8_t kind = u8();
    if (kind < 128) return kind;
    if (kind < 208) return u16();
    if (kind < 248) return (std::uint64_t{1} << kind % 24) + u8() % 3 - 1;
    return u64();
  }
  // At most `most` bytes.
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t most) {
    return in_.bytes(std::min(most, in_.remaining()));
  }

 private:
  ByteReader in_;
};

}  // namespace vpfs::test
