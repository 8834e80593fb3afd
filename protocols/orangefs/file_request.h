#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "protocols/orangefs/basic_types.h"
#include "protocols/orangefs/datafile_layout.h"

// The logical bytes that a PVFS_Request selects, computed as a data server does
// (docs/wire-orangefs.md section 2). The type repeats from the start of the file; each repetition
// begins where the extent of the previous one ends. The selected bytes form a stream, and an IO
// takes `aggregate_size` bytes of it from position `file_request_offset`.
//
// An unchecked request may be hostile: it can name 2^31 blocks at each of 200 levels. All work is
// counted and stops after kMostSteps. A step looks at one element or translates one position; it
// takes some 10 ns.
namespace vpfs::orangefs {

inline constexpr std::int64_t kMostSteps = 16384;
// More than fit into a request's 16 KiB.
inline constexpr std::size_t kMostElements = 208;

// The elements of a request on the wire, borrowed: 80 bytes each.
class WireElements {
 public:
  WireElements() = default;
  explicit WireElements(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] FileRequestElement operator[](std::size_t i) const;

 private:
  std::span<const std::byte> bytes_;
};

// The begin of a request that is one run without holes; its stream is the file from there. Nothing
// for other requests. Takes a few nanoseconds for the usual request.
[[nodiscard]] std::optional<std::int64_t> dense_start(const WireElements& elements);
[[nodiscard]] std::optional<std::int64_t> dense_start(std::span<const FileRequestElement> elements);

// A checked element and values derived from it.
struct DatatypeNode {
  std::int64_t offset = 0;  // of its first block, or of the bytes of a plain block
  std::int64_t stride = 0;
  std::int64_t extent = 0;
  std::int64_t block_bytes = 0;  // in one of its blocks
  std::int32_t blocks = 1;
  std::int32_t block_elements = 1;  // of type `element` in a block, unless it is of plain bytes
  std::int16_t element = -1;
  std::int16_t next = -1;    // the next element of the same type; -1: none
  bool plain_block = false;  // a block is one run of bytes
  // For the type that begins with this element.
  bool plain_type = false;  // any number of repetitions is one run from `type_offset`
  std::int64_t type_offset = 0;
  std::int64_t type_bytes = 0;  // in one
  std::int64_t low = 0;         // the range of the bytes of one, from its start
  std::int64_t high = 0;
  std::int64_t runs = 0;  // in one, at most
  bool ordered = true;    // its bytes come in the order of the file, none twice
};

// A checked request that is not dense. Borrows its nodes.
class Datatype {
 public:
  using Storage = std::array<DatatypeNode, kMostElements>;

  // Fills the storage from the start; the datatype borrows it. Nothing for requests that are
  // malformed, overflow, or need more than kMostSteps to check.
  [[nodiscard]] static std::optional<Datatype> check(const WireElements& elements,
                                                     Storage& storage);
  [[nodiscard]] static std::optional<Datatype> check(std::span<const FileRequestElement> elements,
                                                     Storage& storage);
  // From another datatype's nodes().
  explicit Datatype(std::span<const DatatypeNode> nodes) : nodes_(nodes) {}
  [[nodiscard]] std::span<const DatatypeNode> nodes() const { return nodes_; }

  // Bytes in one repetition; positive.
  [[nodiscard]] std::int64_t bytes() const { return nodes_[0].type_bytes; }

  // The positions [offset, offset + size) of the stream.
  struct Range {
    std::int64_t offset = 0;
    std::int64_t size = 0;
  };
  // The logical bytes that contain a range with size > 0, widened to whole repetitions. Nothing
  // unless all are in [0, limit].
  struct Span {
    std::int64_t low = 0;
    std::int64_t high = 0;
    bool ordered = true;    // as above
    std::int64_t runs = 0;  // at most
  };
  [[nodiscard]] std::optional<Span> span(const Range& range, std::int64_t limit) const;

  // How many bytes of a range below the logical position `end` the datafile has. Nothing when this
  // needs more than kMostSteps.
  // REQUIRES: span(range, layout.limit()) has a value; it is ordered unless `end` is the limit.
  [[nodiscard]] std::optional<std::int64_t> count(const Range& range, const DatafileLayout& layout,
                                                  std::int64_t end) const;

  // The rest of the run from position `at` of the stream; at least one byte.
  struct Run {
    std::int64_t logical = 0;
    std::int64_t size = 0;
  };
  [[nodiscard]] Run run_at(std::int64_t at) const;

 private:
  std::span<const DatatypeNode> nodes_;
};

}  // namespace vpfs::orangefs
