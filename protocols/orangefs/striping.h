#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "protocols/orangefs/datafile_layout.h"
#include "protocols/orangefs/file_request.h"
#include "protocols/orangefs/requests.h"

// How many bytes one data server moves for an IO or SMALL_IO (docs/wire-orangefs.md section 4).
namespace vpfs::orangefs {

// The length of a datafile that holds this server's part of the logical bytes [0, logical): the
// datafile offset of the first byte at or past `logical`. Nothing for distributions that
// DatafileLayout does not know.
[[nodiscard]] std::optional<std::int64_t> physical_offset(const Distribution& distribution,
                                                          Placement placement,
                                                          std::int64_t logical);

// Bytes that one server moves for an IO or SMALL_IO.
struct TransferSize {
  std::int64_t bytes = 0;
  bool exact = true;  // false: `bytes` is an upper bound
};

// The fields of an IO that determine its data. Borrows from it.
struct IoFields {
  const Distribution& distribution;
  std::string_view strips;  // of a varstrip_dist
  Placement placement;
  std::int64_t offset = 0;  // file_request_offset
  std::int64_t size = 0;    // aggregate_size
};

// One datafile's part of an IO. Small for every datatype.
struct IoPart {
  enum class Kind : std::uint8_t {
    unknown,  // only `requested` is known
    dense,    // one run of the datafile, [begin, end)
    sparse,   // bytes within [begin, end), not all of them
  };
  Kind kind = Kind::unknown;
  bool ordered = true;  // its bytes come in the order of the file, none twice
  // Ignores the datafile's end. Exact unless the distribution is unknown or the datatype malformed
  // or too complex; then it is aggregate_size. Negative or overflowing fields give an upper bound
  // of zero.
  TransferSize requested;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  // What a read moves from a datafile of `bstream_size` bytes. Nothing if the size cuts a sparse
  // part: see SparseIo. An unordered part also gives only an upper bound: what OrangeFS sends past
  // the first missing byte depends on its buffers.
  [[nodiscard]] std::optional<TransferSize> readable(std::int64_t bstream_size) const;
};

// Work is bounded by kMostSteps. Allocates nothing.
[[nodiscard]] IoPart part_of(const IoFields& io, const WireElements& elements);
[[nodiscard]] IoPart part_of(const IoFields& io, std::span<const FileRequestElement> elements);

// Keeps what is needed of an IO with a sparse part to compute later, without the message, what it
// moves. Takes up to 24 KiB, less than twice the message.
class SparseIo {
 public:
  // Nothing unless part_of() says sparse.
  [[nodiscard]] static std::unique_ptr<SparseIo> of(const IoFields& io,
                                                    const WireElements& elements);
  [[nodiscard]] static std::unique_ptr<SparseIo> of(const IoFields& io,
                                                    std::span<const FileRequestElement> elements);

  // Like IoPart::readable(), but always has a result. The result is also an upper bound when the
  // exact value would need more than kMostSteps.
  [[nodiscard]] TransferSize readable(std::int64_t bstream_size) const;

  [[nodiscard]] const IoPart& part() const { return part_; }
  [[nodiscard]] const DatafileLayout& layout() const { return layout_; }
  [[nodiscard]] Datatype datatype() const { return Datatype(nodes_); }
  [[nodiscard]] const Datatype::Range& range() const { return range_; }

 private:
  SparseIo(const IoPart& part, const DatafileLayout& layout, const Datatype& datatype,
           const Datatype::Range& range);
  template <typename Elements>
  [[nodiscard]] static std::unique_ptr<SparseIo> made_of(const IoFields& io,
                                                         const Elements& elements);

  IoPart part_;
  DatafileLayout layout_;
  Datatype::Range range_;
  std::vector<DatatypeNode> nodes_;
};

// The same for decoded bodies.
[[nodiscard]] IoFields fields_of(const IoRequestBody& io);
[[nodiscard]] IoFields fields_of(const SmallIoRequest& io);
[[nodiscard]] TransferSize requested_bytes(const IoRequestBody& io);
[[nodiscard]] TransferSize requested_bytes(const SmallIoRequest& io);
[[nodiscard]] TransferSize readable_bytes(const IoRequestBody& io, std::int64_t bstream_size);
[[nodiscard]] TransferSize readable_bytes(const SmallIoRequest& io, std::int64_t bstream_size);

}  // namespace vpfs::orangefs
