#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace vpfs {

// The header before the IP packet in a captured packet.
enum class LinkType {
  ethernet,
  raw_ip,
  loopback,  // the address family, in four bytes
  linux_sll,
  linux_sll2,
};

struct Packet {
  std::chrono::nanoseconds time{0};  // since the epoch
  std::span<const std::byte> bytes;  // valid until the next packet is read
  bool cut = false;                  // the capture does not hold all of the packet
};

// Reads a capture file with libpcap: pcap or pcapng, compressed with gzip or not.
class PcapReader {
 public:
  // Every error names the file; errors of next() also name the packet, counted from 1.
  [[nodiscard]] static Result<PcapReader> open(const std::string& path);

  PcapReader(PcapReader&&) noexcept;
  PcapReader& operator=(PcapReader&&) noexcept;
  ~PcapReader();

  [[nodiscard]] LinkType link_type() const { return link_type_; }
  // The next packet; none at the end of the file.
  [[nodiscard]] Result<std::optional<Packet>> next();

 private:
  struct File;
  struct CloseCapture {
    void operator()(void* capture) const;
  };

  explicit PcapReader(std::string path);
  [[nodiscard]] Result<void> start();

  std::string path_;
  std::unique_ptr<File> file_;
  std::unique_ptr<void, CloseCapture> capture_;  // a pcap_t; reads file_, so it goes first
  LinkType link_type_ = LinkType::ethernet;
  std::uint64_t packets_ = 0;
};

}  // namespace vpfs
