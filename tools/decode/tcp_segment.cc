#include "tools/decode/tcp_segment.h"

#include <algorithm>
#include <cstdio>

namespace vpfs {
namespace {

using Bytes8 = std::span<const std::byte>;

constexpr std::uint32_t kEtherIpv4 = 0x0800;
constexpr std::uint32_t kEtherIpv6 = 0x86dd;
constexpr std::uint32_t kEtherVlan = 0x8100;
constexpr std::uint32_t kEtherQinq = 0x88a8;
constexpr std::uint32_t kProtocolTcp = 6;

// Big-endian integers. Past the end they are zero; the checks below refuse that.
std::uint32_t u8(Bytes8 bytes, std::size_t at) {
  return at < bytes.size() ? std::to_integer<std::uint32_t>(bytes[at]) : 0;
}
std::uint32_t u16(Bytes8 bytes, std::size_t at) {
  return u8(bytes, at) << 8 | u8(bytes, at + 1);
}
std::uint32_t u32(Bytes8 bytes, std::size_t at) {
  return u16(bytes, at) << 16 | u16(bytes, at + 2);
}
Bytes8 from(Bytes8 bytes, std::size_t at) {
  return bytes.subspan(std::min(at, bytes.size()));
}

struct IpPacket {
  std::uint32_t ether_type = 0;
  Bytes8 bytes;
};

// The first bits of the packet tell the IP version.
IpPacket bare_ip(Bytes8 packet) {
  return {.ether_type = u8(packet, 0) >> 4 == 6 ? kEtherIpv6 : kEtherIpv4, .bytes = packet};
}

IpPacket ip_packet(LinkType link, Bytes8 packet) {
  switch (link) {
    case LinkType::raw_ip:
      return bare_ip(packet);
    case LinkType::loopback:
      return bare_ip(from(packet, 4));
    case LinkType::linux_sll:
      return {.ether_type = u16(packet, 14), .bytes = from(packet, 16)};
    case LinkType::linux_sll2:
      return {.ether_type = u16(packet, 0), .bytes = from(packet, 20)};
    case LinkType::ethernet:
      break;
  }
  std::size_t at = 12;
  while (u16(packet, at) == kEtherVlan || u16(packet, at) == kEtherQinq) at += 4;
  return {.ether_type = u16(packet, at), .bytes = from(packet, at + 2)};
}

// Sets the addresses and returns the TCP segment's bytes; empty for other packets.
Bytes8 unwrap_ipv4(Bytes8 packet, TcpSegment& segment) {
  const std::size_t header_size = (u8(packet, 0) & 0xfU) * std::size_t{4};
  const bool is_fragment = (u16(packet, 6) & 0x3fffU) != 0;
  if (u8(packet, 0) >> 4 != 4 || header_size < 20 || is_fragment) return {};
  if (u8(packet, 9) != kProtocolTcp || packet.size() < header_size) return {};
  for (std::size_t i = 0; i < 4; ++i) {
    segment.from.address[i] = static_cast<std::uint8_t>(u8(packet, 12 + i));
    segment.to.address[i] = static_cast<std::uint8_t>(u8(packet, 16 + i));
  }
  // With segmentation offload the length may be zero.
  const std::size_t total = u16(packet, 2) != 0 ? u16(packet, 2) : packet.size();
  return from(packet.first(std::min(total, packet.size())), header_size);
}

Bytes8 unwrap_ipv6(Bytes8 packet, TcpSegment& segment) {
  constexpr std::size_t kHeaderSize = 40;
  if (u8(packet, 0) >> 4 != 6 || packet.size() < kHeaderSize) return {};
  segment.from.is_ipv6 = segment.to.is_ipv6 = true;
  for (std::size_t i = 0; i < 16; ++i) {
    segment.from.address[i] = static_cast<std::uint8_t>(u8(packet, 8 + i));
    segment.to.address[i] = static_cast<std::uint8_t>(u8(packet, 24 + i));
  }
  const std::size_t length = u16(packet, 4) != 0 ? kHeaderSize + u16(packet, 4) : packet.size();
  Bytes8 rest = from(packet.first(std::min(length, packet.size())), kHeaderSize);
  std::uint32_t next = u8(packet, 6);
  // Hop-by-hop, routing and destination options may precede TCP.
  while ((next == 0 || next == 43 || next == 60) && !rest.empty()) {
    next = u8(rest, 0);
    rest = from(rest, (u8(rest, 1) + std::size_t{1}) * 8);
  }
  return next == kProtocolTcp ? rest : Bytes8();
}

}  // namespace

std::string to_string(const HostPort& host) {
  std::string text;
  if (host.is_ipv6) {
    for (std::size_t i = 0; i < host.address.size(); i += 2) {
      std::array<char, 8> group{};
      const unsigned value = host.address[i] * 256U + host.address[i + 1];
      std::snprintf(group.data(), group.size(), "%s%x", i == 0 ? "[" : ":", value);
      text += group.data();
    }
    text += "]";
  } else {
    for (std::size_t i = 0; i < 4; ++i) {
      text += (i == 0 ? "" : ".") + std::to_string(host.address[i]);
    }
  }
  return text + ":" + std::to_string(host.port);
}

std::optional<TcpSegment> parse_tcp(LinkType link, std::span<const std::byte> packet) {
  const IpPacket ip = ip_packet(link, packet);
  TcpSegment segment;
  Bytes8 tcp;
  if (ip.ether_type == kEtherIpv4) tcp = unwrap_ipv4(ip.bytes, segment);
  if (ip.ether_type == kEtherIpv6) tcp = unwrap_ipv6(ip.bytes, segment);
  const std::size_t header_size = (u8(tcp, 12) >> 4) * std::size_t{4};
  if (header_size < 20 || tcp.size() < header_size) return std::nullopt;
  segment.from.port = static_cast<std::uint16_t>(u16(tcp, 0));
  segment.to.port = static_cast<std::uint16_t>(u16(tcp, 2));
  segment.sequence = u32(tcp, 4);
  segment.syn = (u8(tcp, 13) & 0x02U) != 0;
  segment.ack = (u8(tcp, 13) & 0x10U) != 0;
  segment.payload = tcp.subspan(header_size);
  return segment;
}

}  // namespace vpfs
