#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/wide.h"

namespace vpfs::stage {

// Hashes texts of any bytes. A secret seed keeps peers from choosing texts that collide. The hash
// depends on the machine's byte order.
class TextHash {
 public:
  explicit TextHash(std::uint64_t seed = 0)
      : first_(fold(seed ^ 0xa0761d6478bd642f, 0xe7037ed1a0b428db)),
        second_(fold(seed ^ 0x8ebc6af09c88c6e3, 0x589965cc75374cc3)) {}

  [[nodiscard]] std::uint64_t operator()(std::string_view text) const {
    std::uint64_t hash = first_;
    const char* at = text.data();
    std::size_t left = text.size();
    for (; left > 16; at += 16, left -= 16) {
      hash = fold(eight(at) ^ second_, eight(at + 8) ^ hash);
    }
    // The rest as two numbers, which may overlap.
    std::uint64_t head = 0;
    std::uint64_t tail = 0;
    if (left >= 8) {
      head = eight(at);
      tail = eight(at + left - 8);
    } else if (left >= 4) {
      head = four(at);
      tail = four(at + left - 4);
    } else if (left > 0) {
      head = byte(at) << 16 | byte(at + left / 2) << 8 | byte(at + left - 1);
    }
    return fold(fold(head ^ second_, tail ^ hash) ^ first_, second_ ^ text.size());
  }

 private:
  // The product's halves.
  [[nodiscard]] static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    const Wide product = Wide{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  [[nodiscard]] static std::uint64_t eight(const char* at) {
    std::uint64_t number = 0;
    std::memcpy(&number, at, sizeof number);
    return number;
  }
  [[nodiscard]] static std::uint64_t four(const char* at) {
    std::uint32_t number = 0;
    std::memcpy(&number, at, sizeof number);
    return number;
  }
  [[nodiscard]] static std::uint64_t byte(const char* at) { return static_cast<std::uint8_t>(*at); }

  std::uint64_t first_;
  std::uint64_t second_;
};

}  // namespace vpfs::stage
