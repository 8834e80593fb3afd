#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace vpfs {

enum class LinkType : std::uint32_t {
  ethernet = 1,
  raw_ip = 101,
  linux_sll = 113,
  linux_sll2 = 276
};

struct Packet {
  std::chrono::nanoseconds time{0};  // since the epoch
  std::span<const std::byte> bytes;  // valid until the next packet is read
  bool cut = false;                  // the capture does not hold all of the packet
};

// Reads a pcap file (either byte order, microseconds or nanoseconds), compressed with gzip or not.
class PcapReader {
 public:
  // Every error names the file.
  [[nodiscard]] static Result<PcapReader> open(const std::string& path);

  [[nodiscard]] LinkType link_type() const { return link_type_; }
  // The next packet; none at the end of the file.
  [[nodiscard]] Result<std::optional<Packet>> next();

 private:
  struct CloseFile {
    void operator()(void* file) const;
  };

  explicit PcapReader(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] Result<void> read_file_header();
  // Fills `into` as far as the file goes.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> into);
  [[nodiscard]] std::uint32_t u32(std::span<const std::byte> bytes) const;

  std::string path_;
  std::unique_ptr<void, CloseFile> file_;  // a gzFile
  LinkType link_type_ = LinkType::ethernet;
  bool big_endian_ = false;
  bool nanoseconds_ = false;
  std::uint64_t packets_ = 0;
  std::vector<std::byte> packet_;
};

}  // namespace vpfs
