#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "tools/decode/tcp_segment.h"

namespace vpfs {

// Reassembles one direction of a TCP connection. Captured segments may come in any order, repeat
// and overlap; bytes come out in order and once.
class TcpStream {
 public:
  // The bytes that this segment makes available; valid until the next call.
  [[nodiscard]] std::span<const std::byte> add(const TcpSegment& segment);

  [[nodiscard]] std::uint64_t size() const { return next_; }
  struct Gap {
    std::uint64_t offset = 0;  // of the first missing byte
    std::uint64_t missing = 0;
    std::uint64_t bytes_beyond = 0;  // captured after the gap, so not usable
  };
  // The missing bytes before captured segments.
  [[nodiscard]] std::optional<Gap> gap() const;
  // Whether a SYN with this sequence number begins another connection on the same ports.
  [[nodiscard]] bool is_other_beginning(const TcpSegment& syn) const {
    return start_ && *start_ != syn.sequence + 1;
  }

 private:
  std::optional<std::uint32_t> start_;  // sequence number of the first byte
  std::uint64_t next_ = 0;              // offset in the stream that comes next
  std::map<std::uint64_t, std::vector<std::byte>> early_;
  std::vector<std::byte> ready_;
};

}  // namespace vpfs
