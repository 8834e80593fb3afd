#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace vpfs {

// A number of bytes.
struct Bytes {
  std::uint64_t count = 0;

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    count -= other.count;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
};

// A number of bytes each second.
struct BytesPerSecond {
  std::uint64_t count = 0;
  constexpr auto operator<=>(const BytesPerSecond&) const = default;
};

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

// "65536", "64 KiB", "64KiB", "1.5 GiB", "10 MB" (decimal units too). The result must be a whole
// number of bytes.
[[nodiscard]] Result<Bytes> parse_bytes(std::string_view text);
// Like parse_bytes, followed by "/s": "400 MiB/s".
[[nodiscard]] Result<BytesPerSecond> parse_rate(std::string_view text);
// "250 ms", "30s", "2 min", "1 h", "50 us", "10 ns". Only "0" needs no unit.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);

// The shortest exact or one-decimal form: "64 KiB", "1.5 MiB", "250 ms".
[[nodiscard]] std::string to_string(Bytes bytes);
[[nodiscard]] std::string to_string(BytesPerSecond rate);
[[nodiscard]] std::string to_string(Duration duration);

}  // namespace vpfs
