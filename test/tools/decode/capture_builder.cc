#include "test/tools/decode/capture_builder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "test/support/process.h"

namespace vpfs::test {
namespace {

void big(std::vector<std::byte>& out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = size; i > 0; --i)
    out.push_back(static_cast<std::byte>(value >> 8 * (i - 1)));
}

// As capture files have it.
std::uint16_t number_of(LinkType link) {
  switch (link) {
    case LinkType::ethernet:
      return 1;
    case LinkType::raw_ip:
      return 101;
    case LinkType::loopback:
      return 0;
    case LinkType::linux_sll:
      return 113;
    case LinkType::linux_sll2:
      return 276;
  }
  return 0;
}

void link_header(std::vector<std::byte>& out, LinkType link, std::uint16_t ether_type) {
  switch (link) {
    case LinkType::ethernet:
      out.resize(out.size() + 12);
      break;
    case LinkType::linux_sll:
      out.resize(out.size() + 14);
      break;
    case LinkType::linux_sll2:
      big(out, ether_type, 2);
      out.resize(out.size() + 18);
      return;
    case LinkType::raw_ip:
      return;
    case LinkType::loopback:
      big(out, ether_type == 0x0800 ? 0x02000000 : 0x0a000000, 4);
      return;
  }
  big(out, ether_type, 2);
}

void address(std::vector<std::byte>& out, const HostPort& host) {
  for (std::size_t i = 0; i < (host.is_ipv6 ? 16U : 4U); ++i) big(out, host.address[i], 1);
}

void ip_header(std::vector<std::byte>& out, const TcpSegment& segment, std::size_t tcp_size) {
  if (segment.from.is_ipv6) {
    big(out, 0x60000000, 4);
    big(out, tcp_size, 2);
    big(out, 6, 1);
    big(out, 64, 1);
  } else {
    big(out, 0x4500, 2);
    big(out, 20 + tcp_size, 2);
    big(out, 0, 4);
    big(out, 64, 1);
    big(out, 6, 1);
    big(out, 0, 2);
  }
  address(out, segment.from);
  address(out, segment.to);
}

}  // namespace

HostPort ipv4_host(std::uint8_t last, std::uint16_t port) {
  return {.address = {10, 0, 0, last}, .port = port};
}

HostPort ipv6_host(std::uint8_t last, std::uint16_t port) {
  HostPort host{.address = {0xfe, 0x80}, .is_ipv6 = true, .port = port};
  host.address.back() = last;
  return host;
}

std::vector<std::byte> packet_of(LinkType link, const TcpSegment& segment) {
  std::vector<std::byte> packet;
  link_header(packet, link, segment.from.is_ipv6 ? 0x86dd : 0x0800);
  ip_header(packet, segment, 20 + segment.payload.size());
  big(packet, segment.from.port, 2);
  big(packet, segment.to.port, 2);
  big(packet, segment.sequence, 4);
  big(packet, 0, 4);
  big(packet, 0x50, 1);
  big(packet, (segment.syn ? 2U : 0U) | (segment.ack ? 0x10U : 0U), 1);
  big(packet, 0, 6);
  packet.insert(packet.end(), segment.payload.begin(), segment.payload.end());
  return packet;
}

CaptureBuilder::CaptureBuilder(Format format) : format_(format) {
  const std::uint16_t link = format.link_number.value_or(number_of(format.link));
  if (format.pcapng) {
    begin_pcapng(link);
    return;
  }
  u32(format.nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4);
  integer(2, 2);
  integer(4, 2);
  for (int i = 0; i < 2; ++i) u32(0);
  u32(65535);
  u32(link);
}

void CaptureBuilder::integer(std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t shift = 8 * (format_.big_endian ? size - 1 - i : i);
    bytes_.push_back(static_cast<std::byte>(value >> shift));
  }
}

void CaptureBuilder::block(std::uint32_t type, const std::function<void()>& body) {
  const std::size_t begin = bytes_.size();
  u32(type);
  u32(0);
  body();
  while (bytes_.size() % 4 != 0) bytes_.push_back(std::byte{0});
  const auto length = static_cast<std::uint32_t>(bytes_.size() + 4 - begin);
  u32(length);
  std::copy_n(bytes_.end() - 4, 4, bytes_.begin() + static_cast<std::ptrdiff_t>(begin) + 4);
}

void CaptureBuilder::begin_pcapng(std::uint16_t link) {
  block(0x0a0d0d0a, [&] {
    u32(0x1a2b3c4d);
    integer(1, 2);
    integer(0, 2);
    integer(~0ULL, 8);
  });
  block(1, [&] {
    integer(link, 2);
    integer(0, 2);
    u32(65535);
    if (!format_.nanoseconds) return;
    // if_tsresol: in powers of 1/10 s; then the end of the options.
    integer(9, 2);
    integer(1, 2);
    bytes_.resize(bytes_.size() + 4);
    bytes_[bytes_.size() - 4] = std::byte{9};
    u32(0);
  });
}

CaptureBuilder& CaptureBuilder::add(const TcpSegment& segment) {
  const std::vector<std::byte> packet = packet_of(format_.link, segment);
  return add_packet(packet, packet.size());
}

CaptureBuilder& CaptureBuilder::add_packet(std::span<const std::byte> packet,
                                           std::size_t original_size) {
  if (format_.pcapng) {
    const std::uint64_t per_second = format_.nanoseconds ? 1'000'000'000 : 1'000'000;
    const std::uint64_t time = 1000 * per_second + packets_++ * per_second / 1000;
    block(6, [&] {
      u32(0);
      u32(static_cast<std::uint32_t>(time >> 32));
      u32(static_cast<std::uint32_t>(time));
      u32(static_cast<std::uint32_t>(packet.size()));
      u32(static_cast<std::uint32_t>(original_size));
      bytes_.insert(bytes_.end(), packet.begin(), packet.end());
    });
    return *this;
  }
  u32(1000);
  u32(packets_++ * (format_.nanoseconds ? 1000000 : 1000));
  u32(static_cast<std::uint32_t>(packet.size()));
  u32(static_cast<std::uint32_t>(original_size));
  bytes_.insert(bytes_.end(), packet.begin(), packet.end());
  return *this;
}

std::string write_file(std::string_view name, std::span<const std::byte> bytes) {
  static const TemporaryDirectory scratch;  // removed when the test program ends
  const std::filesystem::path path = scratch.path() / name;
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path.string();
}

}  // namespace vpfs::test
