#pragma once

#include <cstdint>
#include <optional>

#include "protocols/pvfs2/requests.h"

// How the bytes of a file lie on its datafiles (docs/wire-orangefs.md section 4).
namespace vpfs::pvfs2 {

// A datafile's place in its file.
struct Placement {
  std::uint32_t server_nr = 0;
  std::uint32_t server_ct = 1;
};

// The length of a datafile that holds this server's part of the logical bytes [0, logical): the
// datafile offset of the first byte at or past `logical`. Exact for simple_stripe and basic_dist;
// nothing for other distributions.
[[nodiscard]] std::optional<std::int64_t> physical_offset(const Distribution& distribution,
                                                          Placement placement,
                                                          std::int64_t logical);

// Bytes that one server moves for an IO or SMALL_IO.
struct TransferSize {
  std::int64_t bytes = 0;
  bool exact = true;  // false: `bytes` is an upper bound
};

// The logical bytes of an IO. When not `dense`, they are somewhere in the file and `size` in all.
struct FileRange {
  bool dense = true;
  std::int64_t offset = 0;
  std::int64_t size = 0;
};

// What an IO asks of this datafile, before its end is taken into account: exact for dense types
// over simple_stripe and basic_dist, otherwise aggregate_size as an upper bound. Negative or
// overflowing fields give an upper bound of zero.
[[nodiscard]] TransferSize requested_bytes(const Distribution& distribution, Placement placement,
                                           const FileRange& range);
[[nodiscard]] TransferSize requested_bytes(const IoRequestBody& io);
[[nodiscard]] TransferSize requested_bytes(const SmallIoRequest& io);
// What a read moves when the datafile is `bstream_size` long.
[[nodiscard]] TransferSize readable_bytes(const Distribution& distribution, Placement placement,
                                          const FileRange& range, std::int64_t bstream_size);
[[nodiscard]] TransferSize readable_bytes(const IoRequestBody& io, std::int64_t bstream_size);
[[nodiscard]] TransferSize readable_bytes(const SmallIoRequest& io, std::int64_t bstream_size);

}  // namespace vpfs::pvfs2
