#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/units.h"
#include "dataserver/store/outcome.h"
#include "net/async.h"

namespace vpfs::dataserver {

// Names a bstream; a protocol maps its own names to it.
using BstreamId = std::uint64_t;

// The data of one server: sparse runs of bytes (bstreams). Any id is an empty bstream until it is
// written, and again after it was removed.
//
// Belongs to one strand.
class BstreamStore {
 public:
  // Memory with data; valid as long as `owner` lives.
  struct Part {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  // Memory for the bytes of one write, to be filled in this order before commit().
  struct Window {
    BstreamId id = 0;
    std::int64_t offset = 0;
    std::size_t size = 0;
    std::vector<std::span<std::byte>> parts;
    std::vector<std::shared_ptr<void>> owners;
  };
  struct Space {
    Bytes total;
    Bytes available;
  };

  virtual ~BstreamStore() = default;

  [[nodiscard]] virtual Outcome<std::int64_t> size(BstreamId id) = 0;
  // Exactly `size` bytes, at most most_window(). Holes and bytes past the end read as zeros.
  [[nodiscard]] virtual net::Task<Outcome<std::vector<Part>>> read(BstreamId id,
                                                                   std::int64_t offset,
                                                                   std::size_t size) = 0;
  // Opens a window of 1 to most_window() bytes; may wait for memory. ENOSPC when there is no room.
  // Every window comes back through commit() or abandon().
  [[nodiscard]] virtual net::Task<Outcome<Window>> open_window(BstreamId id, std::int64_t offset,
                                                               std::size_t size) = 0;
  // The window is filled; afterwards reads see the bytes.
  [[nodiscard]] virtual net::Task<Outcome<void>> commit(Window window) = 0;
  // The window stays unfilled or partly filled.
  virtual void abandon(Window window) = 0;
  [[nodiscard]] virtual std::size_t most_window() const = 0;

  [[nodiscard]] virtual Outcome<void> truncate(BstreamId id, std::int64_t size) = 0;
  // Removing a bstream that does not exist is not an error.
  [[nodiscard]] virtual Outcome<void> remove(BstreamId id) = 0;
  // Everything committed before survives a crash after it.
  [[nodiscard]] virtual net::Task<Outcome<void>> flush(BstreamId id) = 0;
  [[nodiscard]] virtual Space space() = 0;

  // Whether operations never suspend for long, so that a connection may await them in turn.
  [[nodiscard]] virtual bool immediate() const = 0;
};

// The end of [offset, offset + size); EFBIG past what any engine stores.
[[nodiscard]] Outcome<std::int64_t> checked_end(std::int64_t offset, std::int64_t size);

}  // namespace vpfs::dataserver
