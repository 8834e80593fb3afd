#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/decode/pcap_reader.h"
#include "tools/decode/tcp_segment.h"

// Makes captures for tests.
namespace vpfs::test {

[[nodiscard]] HostPort ipv4_host(std::uint8_t last, std::uint16_t port);
[[nodiscard]] HostPort ipv6_host(std::uint8_t last, std::uint16_t port);

// A packet with the segment in it, as the link type wraps it.
[[nodiscard]] std::vector<std::byte> packet_of(LinkType link, const TcpSegment& segment);

class CaptureBuilder {
 public:
  struct Format {
    LinkType link = LinkType::ethernet;
    bool big_endian = false;
    bool nanoseconds = false;
    bool pcapng = false;
    // In the file instead of the number of `link`.
    std::optional<std::uint16_t> link_number = std::nullopt;
  };

  CaptureBuilder() : CaptureBuilder(Format{}) {}
  explicit CaptureBuilder(Format format);

  // Packets come a millisecond apart.
  CaptureBuilder& add(const TcpSegment& segment);
  CaptureBuilder& add_packet(std::span<const std::byte> packet, std::size_t original_size);
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void integer(std::uint64_t value, std::size_t size);
  void u32(std::uint32_t value) { integer(value, 4); }
  // A block of pcapng; `body` appends what is inside.
  void block(std::uint32_t type, const std::function<void()>& body);
  void begin_pcapng(std::uint16_t link);

  Format format_;
  std::uint32_t packets_ = 0;
  std::vector<std::byte> bytes_;
};

// Writes a file into a directory that is removed when the test program ends; returns its path.
[[nodiscard]] std::string write_file(std::string_view name, std::span<const std::byte> bytes);

}  // namespace vpfs::test
