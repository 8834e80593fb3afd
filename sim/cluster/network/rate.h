#pragma once

#include <compare>
#include <cstdint>

#include "base/units.h"

namespace vpfs::sim {

// A flow's rate: a number of units of 2^-12 bytes per second. With them, many flows share a slow
// link almost exactly, and the largest capacity of a link (LinkRates::kMost) is still 2^62 units.
struct Rate {
  static constexpr std::uint64_t kUnitsOfAByte = std::uint64_t{1} << 12;

  std::uint64_t units = 0;

  [[nodiscard]] static constexpr Rate of(BytesPerSecond rate) {
    return {rate.count * kUnitsOfAByte};
  }
  // Rounded down.
  [[nodiscard]] constexpr BytesPerSecond bytes() const { return {units / kUnitsOfAByte}; }

  constexpr auto operator<=>(const Rate&) const = default;
  constexpr Rate& operator+=(Rate other) {
    units += other.units;
    return *this;
  }
  constexpr Rate& operator-=(Rate other) {
    units -= other.units;
    return *this;
  }
  friend constexpr Rate operator+(Rate a, Rate b) { return {a.units + b.units}; }
  friend constexpr Rate operator-(Rate a, Rate b) { return {a.units - b.units}; }
};

}  // namespace vpfs::sim
