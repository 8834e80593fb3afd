#pragma once

#include <cstdint>
#include <optional>

#include "protocols/orangefs/basic_types.h"
#include "protocols/orangefs/striping.h"

namespace vpfs::client {

// Walks over the pieces of a file's bytes [offset, offset + size) that are on one datafile, in the
// order in which that datafile holds them.
class StripWalk {
 public:
  struct Piece {
    std::uint64_t position = 0;  // from the start of the range
    std::uint64_t size = 0;
  };

  // `strip_size` 0: the datafile holds everything (basic_dist).
  StripWalk(std::int64_t strip_size, orangefs::Placement placement, std::int64_t offset,
            std::uint64_t size);

  // The next piece, at most `most` bytes of it; nothing when the range is done.
  [[nodiscard]] std::optional<Piece> next(std::uint64_t most);

 private:
  std::int64_t strip_size_;
  orangefs::Placement placement_;
  std::int64_t begin_;
  std::int64_t end_;
  std::int64_t at_;
};

// The length of the file that a datafile of `size` bytes proves: the position of its last byte,
// plus one. At most 2^62, whatever a server says.
[[nodiscard]] std::int64_t logical_end(std::int64_t strip_size, orangefs::Placement placement,
                                       std::int64_t size);

}  // namespace vpfs::client
