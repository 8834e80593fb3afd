#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include "protocols/orangefs/types.h"

namespace vpfs::orangefs {

enum class BmiMode : std::uint32_t { immediate = 1, unexpected = 2, eager = 4, rendezvous = 8 };

// The 24-byte envelope before every OrangeFS message on TCP.
struct BmiHeader {
  BmiMode mode = BmiMode::unexpected;
  Tag tag = 0;
  std::uint64_t payload_size = 0;

  bool operator==(const BmiHeader&) const = default;
};

inline constexpr std::size_t kBmiHeaderSize = 24;
inline constexpr std::uint32_t kBmiMagic = 51903;

enum class BmiError { need_more, bad_magic, bad_mode, payload_too_large };
[[nodiscard]] const char* describe(BmiError error);

// Reads nothing past the header and allocates nothing. `need_more` is not a fault: call again with
// more bytes (a magic that is already wrong is reported at once). After any other error the stream
// has lost its framing; close the connection.
[[nodiscard]] std::expected<BmiHeader, BmiError> decode_bmi_header(
    std::span<const std::byte> bytes, std::uint64_t max_payload = kMaxMessageSize);

[[nodiscard]] std::array<std::byte, kBmiHeaderSize> encode(const BmiHeader& header);

// The mode that a sender of an expected message of that size uses.
[[nodiscard]] constexpr BmiMode expected_mode(std::uint64_t payload_size) {
  return payload_size <= kMaxEagerSize ? BmiMode::eager : BmiMode::rendezvous;
}

}  // namespace vpfs::orangefs
