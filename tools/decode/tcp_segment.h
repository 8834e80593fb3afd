#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tools/decode/pcap_reader.h"

namespace vpfs {

// An IPv4 or IPv6 address and a TCP port.
struct HostPort {
  std::array<std::uint8_t, 16> address{};  // of IPv4 the first four
  bool is_ipv6 = false;
  std::uint16_t port = 0;

  auto operator<=>(const HostPort&) const = default;
};
// "10.0.0.1:3334", "[fe80:0:0:0:0:0:0:1]:3334".
[[nodiscard]] std::string to_string(const HostPort& host);

struct TcpSegment {
  HostPort from;
  HostPort to;
  std::uint32_t sequence = 0;
  bool syn = false;
  bool ack = false;
  std::span<const std::byte> payload;
};

// The TCP segment in a captured packet. Nothing for other traffic and for malformed headers.
[[nodiscard]] std::optional<TcpSegment> parse_tcp(LinkType link, std::span<const std::byte> packet);

}  // namespace vpfs
