#pragma once

#include <cstdint>
#include <optional>

namespace vpfs::proxy {

// What the kernel has counted on a TCP connection, whichever process moved its bytes. Two equal
// counts of one socket, at two times, show that no process has read or written anything between.
struct StreamCounts {
  std::uint64_t cookie = 0;  // of the socket; no other one has it before the host starts again
  std::uint64_t taken = 0;   // bytes that were read from it
  std::uint64_t given = 0;   // bytes that were written to it, and a constant

  bool operator==(const StreamCounts&) const = default;
};

// Nothing: it is not a TCP connection that is open in both directions, or the kernel does not say.
[[nodiscard]] std::optional<StreamCounts> stream_counts(int socket);

// Both directions end for every process that has the socket, which close(2) does not do.
void end_stream(int socket);

}  // namespace vpfs::proxy
