#pragma once

#include <bit>
#include <cstdint>

namespace vpfs::stage {

// A whole number in 16 bits: 6 of exponent, 10 of mantissa. Numbers up to 2048 are exact, larger
// ones at most 1/2048 off.
class SmallFloat {
 public:
  SmallFloat() = default;
  explicit constexpr SmallFloat(std::uint64_t value) : code_(encoded(value)) {}

  [[nodiscard]] constexpr std::uint64_t value() const {
    const std::uint64_t mantissa = code_ & (kOne - 1);
    const int exponent = code_ >> kBits;
    return exponent == 0 ? mantissa : (kOne + mantissa) << (exponent - 1);
  }

 private:
  static constexpr int kBits = 10;
  static constexpr std::uint64_t kOne = std::uint64_t{1} << kBits;

  static constexpr std::uint16_t encoded(std::uint64_t value) {
    if (value < kOne) return static_cast<std::uint16_t>(value);
    int shift = static_cast<int>(std::bit_width(value)) - (kBits + 1);
    // Half of the last place rounds to the nearest. What rounds to the next power of two has one
    // bit more.
    std::uint64_t mantissa = value >> shift;
    if (shift > 0) mantissa += (value >> (shift - 1)) & 1;
    if (mantissa == 2 * kOne) {
      mantissa = kOne;
      ++shift;
    }
    if (shift > kMostShift) return kLargest;
    return static_cast<std::uint16_t>(((shift + 1) << kBits) + static_cast<int>(mantissa - kOne));
  }
  static constexpr int kMostShift = 64 - (kBits + 1);
  static constexpr std::uint16_t kLargest = ((kMostShift + 2) << kBits) - 1;

  std::uint16_t code_;
};

}  // namespace vpfs::stage
