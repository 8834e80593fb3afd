#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/async.h"

namespace vpfs::net {

// Buffered reading from a socket whose owner may cancel or close it at any time; every read then
// returns false, as it does at the end of the stream.
class InputStream {
 public:
  InputStream(Socket& socket, std::size_t capacity);

  // The buffered bytes; valid until the next call that reads or consumes.
  [[nodiscard]] std::span<const std::byte> buffered() const;
  void consume(std::size_t size);

  // Waits until at least `size` bytes are buffered; size <= capacity. Buffers at most `most`, which
  // keeps large data that go elsewhere out of the buffer.
  [[nodiscard]] Task<bool> fill(std::size_t size, std::size_t most = SIZE_MAX);
  // Fills `into` completely, bypassing the buffer.
  [[nodiscard]] Task<bool> read(std::span<std::byte> into);
  // Drops the next `size` bytes. The kernel drops the unbuffered ones without a copy.
  [[nodiscard]] Task<bool> discard(std::uint64_t size);

 private:
  Socket& socket_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace vpfs::net
